# Generated code: deep copies, apply-configurations, custom resource definitions; the page of the
# chart's values; and the modules of berth-scheduler for older Kubernetes. The tools are Go programs, pinned in hack/tools/go.mod and hack/release/go.mod.

.PHONY: generate
generate: ## Write the generated code and the custom resource definitions
	GOWORK=off go tool -modfile=hack/tools/go.mod controller-gen \
	  object applyconfiguration crd paths=./api/... \
	  output:crd:dir=charts/berth/crd-bases
	go -C hack/release run ./readme ../../charts/berth ../../charts/berth-classes
	sed 's/v0\.37\.1/v0.$(RELEASE_OF_1.36)/; s/v1\.37\.1/v1.$(RELEASE_OF_1.36)/' scheduler/go.mod >scheduler/go-1.36.mod
	go mod edit -replace=sigs.k8s.io/controller-runtime=sigs.k8s.io/controller-runtime@$(RUNTIME_OF_1.36) scheduler/go-1.36.mod
	go -C scheduler mod tidy -modfile=go-1.36.mod
	go generate ./internal/poold/pb

.PHONY: golden
golden: bin/helm ## Write anew what the chart renders to, which tests compare: read the difference before you commit it
	BERTH_TEST_HELM=$(CURDIR)/bin/helm go test -tags helm ./test/chart -update
