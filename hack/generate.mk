# Generated code: deep copies, apply-configurations, custom resource definitions.
# The one tool is a Go program pinned in hack/tools/go.mod; nothing else is needed.

.PHONY: generate
generate: ## Write the generated code and the custom resource definitions
	GOWORK=off go tool -modfile=hack/tools/go.mod controller-gen \
	  object applyconfiguration crd paths=./api/... \
	  output:crd:dir=charts/berth/crd-bases
