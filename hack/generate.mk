# Generated code: deep copies, apply-configurations, custom resource definitions; and the page of
# the chart's values. The tools are Go programs, pinned in hack/tools/go.mod and hack/release/go.mod.

.PHONY: generate
generate: ## Write the generated code and the custom resource definitions
	GOWORK=off go tool -modfile=hack/tools/go.mod controller-gen \
	  object applyconfiguration crd paths=./api/... \
	  output:crd:dir=charts/berth/crd-bases
	go -C hack/release run ./readme ../../charts/berth

.PHONY: golden
golden: bin/helm ## Write anew what the chart renders to, which tests compare: read the difference before you commit it
	BERTH_TEST_HELM=$(CURDIR)/bin/helm go test -tags helm ./test/chart -update
