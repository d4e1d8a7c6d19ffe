# The linters, pinned in hack/tools/golangci-lint/go.mod and configured in .golangci.yml.

.PHONY: lint
lint: bin/golangci-lint bin/helm ## Run the linters over every module and the chart
	bin/golangci-lint run --build-tags platform,e2e,thorough,deployed,helm ./...
	cd lab && ../bin/golangci-lint run --build-tags lab ./...
	cd hack/release && ../../bin/golangci-lint run --build-tags helm ./...
	cd test/alerts && ../../bin/golangci-lint run ./...
	# The build flags are those of the scheduler's binary, so that Kubernetes is compiled once.
	cd scheduler && GOFLAGS="$(GOFLAGS_BUILD)" ../bin/golangci-lint run ./...
	# This loads all modules at once, as editors do. Nothing else here does.
	GOWORK=$(CURDIR)/go.work go list -deps ./... ./lab/... ./scheduler/... ./hack/release/... ./test/alerts/... >/dev/null
	bin/helm lint --strict --quiet charts/berth charts/berth-classes

.PHONY: shape
shape: ## Measure the structure of the code that ships
	go run ./test/shape

bin/golangci-lint: hack/tools/golangci-lint/go.mod
	go build $(GOFLAGS_BUILD) -modfile=hack/tools/golangci-lint/go.mod -ldflags "-s -w" -o $@ \
	  github.com/golangci/golangci-lint/v2/cmd/golangci-lint
