# A real Kubernetes on this machine, and Berth on it.

.PHONY: demo
demo: lab-tools images ## Show Berth at work: a cluster, a claim, a pod, data written and read
	go run ./test/demo

.PHONY: lab-up
lab-up: bin/lab ## Start a Kubernetes on this machine: three nodes with disks, and one for controllers
	bin/lab up --control

.PHONY: lab-down
lab-down: bin/lab ## Stop it and leave nothing behind
	bin/lab down

.PHONY: install
install: lab-tools images ## Install Berth on the lab
	go run ./test/demo install

.PHONY: lab-tools
lab-tools: bin/lab bin/helm

# One image contains only the program and runs without privileges; the other also
# contains the tools of LVM and the filesystems.
.PHONY: images
images: bin/berth bin/lab ## Build the container images into bin/images/
	mkdir -p bin/images
	bin/lab image write bin/images/controller.tar --ref localhost/berth/controller:lab --entrypoint /berth --user 65532:65532 \
	  --file /berth=bin/berth
	bin/lab image write bin/images/agent.tar --ref localhost/berth/agent:lab --entrypoint /berth \
	  --layer "$$(bin/lab image userland)" --file /berth=bin/berth

.PHONY: bench-provision
bench-provision: install ## Measure how a claim becomes a running pod; writes docs/benchmarks
	go run ./test/bench/provision

# It makes a cluster of its own, and takes it down at the end.
.PHONY: bench-native
bench-native: lab-tools images image-scheduler ## Measure the same on a native node with simulated LVM; writes docs/benchmarks
	go build $(GOFLAGS_BUILD) -o bin/lvm-stand-in ./test/bench/native/lvm
	bin/lab image write bin/images/agent-native.tar --ref localhost/berth/agent:native --entrypoint /berth \
	  --layer "$$(bin/lab image userland)" --file /berth=bin/berth --file /usr/local/sbin/lvm=bin/lvm-stand-in
	go run ./test/bench/provision -native

# Its disks are in a guest with ZFS, whose modules take ten minutes the first time; its API
# server is on this machine.
.PHONY: bench-local
bench-local: bin/lab bin/berth ## Measure volumes on one node beside the bare commands; writes docs/benchmarks
	go build $(GOFLAGS_BUILD) -o bin/bench-local ./test/bench/local
	$(ENVTEST) bin/bench-local $(BENCH_FLAGS)
