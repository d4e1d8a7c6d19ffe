# Berth's tasks. `make help` lists them.
#
# Needed on the machine: Go, make, git, and root for whatever starts the lab.
# The lab installs the Debian packages it needs by itself.

SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export CGO_ENABLED ?= 0
# Each module is built by its own go.mod, here as by those who import it. The
# workspace file is for editors.
export GOWORK := off
VERSION ?= 0.1.0
GOFLAGS_BUILD := -trimpath -buildvcs=false

include hack/generate.mk
include hack/test.mk
include hack/lint.mk
include hack/lab.mk
include hack/scheduler.mk
include hack/release.mk

.PHONY: help
help: ## List the tasks
	@awk 'BEGIN {FS = ":.*## "} /^[a-zA-Z0-9_-]+:.*## / {printf "  %-20s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: bin/berth bin/kubectl-berth ## Build the product's programs into bin/

.PHONY: bin/berth
bin/berth:
	go build $(GOFLAGS_BUILD) -ldflags "-s -w -X main.version=$(VERSION)" -o $@ ./cmd/berth

# On the PATH it is `kubectl berth`.
.PHONY: bin/kubectl-berth
bin/kubectl-berth:
	go build $(GOFLAGS_BUILD) -ldflags "-s -w -X main.version=$(VERSION)" -o $@ ./cmd/kubectl-berth

.PHONY: bin/lab
# Not trimmed: the lab finds the modules it builds beside its own source.
bin/lab:
	go -C lab build -buildvcs=false -o ../$@ ./cmd/lab

bin/helm: hack/tools/helm/go.mod
	go build $(GOFLAGS_BUILD) -modfile=hack/tools/helm/go.mod -ldflags "-s -w" -o $@ helm.sh/helm/v4/cmd/helm

.PHONY: clean
clean: ## Remove what was built here; caches and a running lab stay
	rm -rf bin
