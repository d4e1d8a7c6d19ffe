# berth-scheduler: a module of its own, because only it is built with Kubernetes'
# scheduler. Its build flags are those of the lab's Kubernetes, so that both share the
# compiler's cache.

SCHEDULER_LDFLAGS = $(call SCHEDULER_LDFLAGS_OF,1.37)

# A scheduler must not be newer than its API server, so there is one for each of these minors of
# Kubernetes. An older minor has a module file of its own, go-MINOR.mod, that `make generate` writes.
SCHEDULER_MINORS := 1.36 1.37
RELEASE_OF_1.36  := 36.4
RELEASE_OF_1.37  := 37.1
# The newest controller-runtime that builds with Kubernetes 1.36. The tests use it, the program does not.
RUNTIME_OF_1.36  := v0.24.1

SCHEDULER_LDFLAGS_OF = -s -w -X k8s.io/component-base/version.gitVersion=v1.$(RELEASE_OF_$(1))
SCHEDULER_MODFILE_OF = $(if $(filter-out 1.37,$(1)),-modfile=go-$(1).mod)

# The tests are run with the newest, and with the others by `make test-versions`.
.PHONY: scheduler-older
scheduler-older: ## Build berth-scheduler for each older Kubernetes
	$(foreach minor,$(filter-out 1.37,$(SCHEDULER_MINORS)),go -C scheduler build $(GOFLAGS_BUILD) $(call SCHEDULER_MODFILE_OF,$(minor)) \
	  -ldflags "$(call SCHEDULER_LDFLAGS_OF,$(minor))" -o ../bin/berth-scheduler-$(minor) . ;)

.PHONY: bin/berth-scheduler
bin/berth-scheduler:
	go -C scheduler build $(GOFLAGS_BUILD) -ldflags "$(SCHEDULER_LDFLAGS)" -o ../$@ .

.PHONY: image-scheduler
image-scheduler: bin/berth-scheduler bin/lab ## Build the image of berth-scheduler into bin/images/
	mkdir -p bin/images
	bin/lab image write bin/images/scheduler.tar --ref localhost/berth/scheduler-1.37:lab --entrypoint /berth-scheduler --user 65532:65532 \
	  --file /berth-scheduler=bin/berth-scheduler

.PHONY: test-scheduler
test-scheduler: bin/lab bin/helm ## berth-scheduler's tests, those on a real API server included
	CGO_ENABLED=1 go -C scheduler test -race -timeout 10m ./internal/...
	$(ENVTEST) BERTH_TEST_PROVISIONER="$$(bin/lab binary csi-provisioner)" \
	  go -C scheduler test -trimpath -timeout 15m ./test

# The build flags are those of the program, so that nothing is compiled twice. BENCH_FLAGS
# makes the run shorter, for example BENCH_FLAGS='-nodes 100 -rounds 2'.
.PHONY: bench-scheduling
bench-scheduling: bin/lab bin/helm ## Measure berth-scheduler against the stock one; writes docs/benchmarks
	go -C scheduler build $(GOFLAGS_BUILD) -ldflags "$(SCHEDULER_LDFLAGS)" -o ../bin/bench-scheduling ./bench
	$(ENVTEST) bin/bench-scheduling $(BENCH_FLAGS)
