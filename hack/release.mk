# A release: all that installs Berth, in one folder. It has the same bytes whenever it is
# made again of the same source, with the same Go, while Debian's packages stay the same.

# Registry, and the path in it, to push to, such as registry.example.org/team. A chart that
# was released with it finds its images there without further values.
REGISTRY ?=
# Address of the folder from which krew downloads the plugin, with a slash at its end.
DOWNLOADS ?=

PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: bin/releaser
bin/releaser:
	go -C hack/release build $(GOFLAGS_BUILD) -o ../../$@ .

.PHONY: release
release: release-programs bin/releaser bin/lab ## Write images, chart, plugin, checksums and bills of materials to bin/release
	$(WRITE_RELEASE) bin/release

WRITE_RELEASE = bin/releaser write --version $(VERSION) --registry "$(REGISTRY)" --downloads "$(DOWNLOADS)" \
  --programs bin/programs --module-cache "$$(go env GOMODCACHE)" --go "$$(go env GOROOT)" \
  --userland "amd64=$$(bin/lab image userland --arch amd64)" --userland "arm64=$$(bin/lab image userland --arch arm64)"

.PHONY: push
push: bin/releaser ## Bring what is in bin/release to a registry: make push REGISTRY=registry.example.org/team
	@test -n "$(REGISTRY)" || { echo "say which registry: make push REGISTRY=registry.example.org/team"; exit 1; }
	bin/releaser push bin/release $(REGISTRY)

# The folder is emptied first: a program of an earlier version must not be released again.
.PHONY: release-programs
release-programs:
	rm -rf bin/programs
	for platform in $(PLATFORMS); do \
	  export GOOS=$${platform%/*} GOARCH=$${platform#*/}; suffix=$$(go env GOEXE); \
	  go build $(GOFLAGS_BUILD) -ldflags "-s -w -X main.version=$(VERSION)" -o bin/programs/kubectl-berth-$$GOOS-$$GOARCH$$suffix ./cmd/kubectl-berth; \
	done
	for arch in amd64 arm64; do \
	  export GOOS=linux GOARCH=$$arch; \
	  go build $(GOFLAGS_BUILD) -ldflags "-s -w -X main.version=$(VERSION)" -o bin/programs/berth-linux-$$arch ./cmd/berth; \
	  $(foreach minor,$(SCHEDULER_MINORS),go -C scheduler build $(GOFLAGS_BUILD) $(call SCHEDULER_MODFILE_OF,$(minor)) \
	    -ldflags "$(call SCHEDULER_LDFLAGS_OF,$(minor))" -o ../bin/programs/berth-scheduler-$(minor)-linux-$$arch .;) \
	done

# Releases of a small program in place of Berth's, one that Helm itself renders, and what
# the chart renders to. Go must not answer from its cache: it does not see what Helm reads.
.PHONY: test-release
test-release: bin/helm ## What the chart renders to, and a registry from which a release is pulled back, by Helm as well
	BERTH_TEST_HELM=$(CURDIR)/bin/helm go -C hack/release test -tags helm -count=1 ./...
	BERTH_TEST_HELM=$(CURDIR)/bin/helm go test -tags helm -count=1 ./test/chart

.PHONY: test-release-all
test-release-all: release test-release ## The same, and that a release of the whole made twice is the same
	$(WRITE_RELEASE) bin/release-again
	diff -r bin/release bin/release-again
	cd bin/release && sha256sum --check --quiet SHA256SUMS
	rm -rf bin/release-again
