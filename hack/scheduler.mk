# berth-scheduler: a module of its own, because only it is built with Kubernetes'
# scheduler. Its build flags are those of the lab's Kubernetes, so that both share the
# compiler's cache.

SCHEDULER_LDFLAGS := -s -w -X k8s.io/component-base/version.gitVersion=v1.37.1

.PHONY: bin/berth-scheduler
bin/berth-scheduler:
	go -C scheduler build $(GOFLAGS_BUILD) -ldflags "$(SCHEDULER_LDFLAGS)" -o ../$@ .

.PHONY: image-scheduler
image-scheduler: bin/berth-scheduler bin/lab ## Build the image of berth-scheduler into bin/images/
	mkdir -p bin/images
	bin/lab image write bin/images/scheduler.tar --ref localhost/berth/scheduler:lab --entrypoint /berth-scheduler --user 65532:65532 \
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
