# The tiers of tests.
#
#   quick     no root, no cluster, a minute: after every change
#   test      all that guards a merge: run by continuous integration
#   test-all  all tests: before a capability is called done

ENVTEST = KUBEBUILDER_ASSETS="$$(bin/lab assets)"

# Packages whose tests start an API server need its binaries, and take longer.
TESTS_IMPORT = go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./...
WITHOUT_SERVER = $(TESTS_IMPORT) | grep -v -e /internal/apitest -e /controllertest | cut -d' ' -f1

.PHONY: quick
quick: ## Unit tests without root and without a cluster (a minute)
	go vet ./...
	go -C lab vet ./...
	go -C hack/release vet ./...
	go test -short $$($(WITHOUT_SERVER))
	go -C lab test ./...
	go -C scheduler test -trimpath ./internal/...
	go -C hack/release test ./...

.PHONY: test
test: check-generated lint test-unit test-scheduler test-release test-alerts test-platform test-e2e test-upstream-core ## All that guards a merge (half an hour, more the first time)

.PHONY: test-all
test-all: test test-release-all test-leave test-btrfs test-guard test-disks test-platform-all test-platform-iscsi test-platform-zfs test-lab test-e2e-schedulers test-e2e-space test-e2e-copies test-e2e-nodes test-e2e-restore test-e2e-separate test-e2e-zfs test-e2e-btrfs test-e2e-failover test-e2e-attach test-cloud test-upstream test-versions test-record test-fuzz mutants soak ## Everything, long models included

.PHONY: check-generated
check-generated: generate
	@git diff --exit-code --stat -- api charts internal scheduler || { echo "generated files are out of date: commit what make generate wrote"; exit 1; }

# The race detector needs cgo. The ledger's oracle has no goroutines, and would take twenty
# times as long under the race detector.
ORACLE = ./internal/ledger/oracle
# It makes the shells' schedules ten times slower, so that it sees few, and most are played without it. A process
# plays them on one processor, so two share them.
SHELLS = go test -timeout 20m -count=1 -v ./internal/explore/shell -schedules

# Go 1.26 gives the race detector one context for all timers of a synctest bubble: two threads that
# run timers of a bubble at once crash it or hang (golang/go#78156). The detector finds races by
# order and not by what happens at once, so one processor hides none.
BUBBLES = grep -e ' testing/synctest'
RACE = go test -race -timeout 20m

.PHONY: test-unit
test-unit: bin/lab ## Unit tests with the race detector, and those on a real API server
	$(ENVTEST) CGO_ENABLED=1 $(RACE) -cpu 1 $$($(TESTS_IMPORT) | $(BUBBLES) | cut -d' ' -f1)
	$(ENVTEST) CGO_ENABLED=1 $(RACE) $$($(TESTS_IMPORT) | $(BUBBLES) -v | cut -d' ' -f1 | grep -v $(ORACLE:.%=%))
	go test $(ORACLE)
	$(SHELLS) 5000 -run 'Promises|SameStory' & first=$$!; $(SHELLS) 5000 -from 5000 -run Promises; second=$$?; wait $$first && exit $$second
	CGO_ENABLED=1 go -C lab test -race -timeout 10m ./...

# Suites that take minutes each, in guests of their own.
LVM_SUITES := ./internal/provision/lvm/guesttest
ZFS_SUITES := ./internal/provision/zfs/guesttest
ISCSI_SUITES := ./internal/provision/iscsi/guesttest

# Prometheus' engine is a dependency of these tests alone, so they are a module of their own.
.PHONY: test-alerts
test-alerts: ## Each alert, and each query of the dashboard, in Prometheus' own engine
	go -C test/alerts test ./...

.PHONY: test-leave
test-leave: bin/lab bin/helm ## Install, roll back, uninstall and install again, by the commands of the pages, on a real API server
	$(ENVTEST) BERTH_TEST_HELM=$(CURDIR)/bin/helm go test -tags helm -count=1 -timeout 10m ./test/leave

# Packages with tests that need root, disks and a kernel with device-mapper.
PLATFORM := ./internal/provision/lvm $(LVM_SUITES)=thin ./internal/provision/device ./internal/provision/device/kernel ./internal/mount/linux ./internal/publish/staging

.PHONY: test-record
test-record: bin/lab ## Every record write of a thousand explored schedules, by its process and by all others, on a real API server
	$(ENVTEST) go test -count=1 -timeout 60m -v ./internal/explore/api -schedules 1000

# Tests that need a kernel with device-mapper run in a throw-away guest.
.PHONY: test-platform
test-platform: bin/lab ## Tests on real LVM, in a guest
	hack/platform $(PLATFORM)

# The suites also run across poold's socket and on thin pools in memory. More rounds give
# random faults more chances.
.PHONY: test-platform-all
test-platform-all: bin/lab ## More of them: across poold's socket, on thin pools, on disks that fail or do not answer, over links that do, and a hundred trials that old bytes never show
	BERTH_TEST_ROUNDS=100 hack/platform ./internal/poold $(LVM_SUITES)=thin $(LVM_SUITES)=manage ./internal/provision/device
	hack/platform $(LVM_SUITES)=conformance $(LVM_SUITES)=thick ./internal/replicate/copies=link
	BERTH_TEST_ROUNDS=100 BERTH_TEST_RUN='NoVolumeShows|NoThinVolumeShows' BERTH_TEST_MINUTES=25 hack/platform ./internal/provision/lvm $(LVM_SUITES)=conformance
	BERTH_TEST_MINUTES=25 hack/platform $(LVM_SUITES)=faults

# The tests on tgt bring an initiator of their own, and run on this machine. The guest is initiator and
# target at once.
.PHONY: test-platform-iscsi
test-platform-iscsi: bin/lab ## Shared disks on real iSCSI targets: on tgt, and in a guest on the kernel's
	@command -v tgtd >/dev/null || apt-get install -y tgt
	go test -tags platform -count=1 -timeout 5m ./internal/provision/iscsi/tgttest
	hack/platform $(ISCSI_SUITES)=lio

# These tests run on this machine, as root, on loop devices: its kernel must be Linux 6.7 or later and
# have btrfs. The kernel of the guests is older.
.PHONY: test-btrfs
test-btrfs: ## Tests on real btrfs, on this machine, with crashes and losses of power at each effect
	@command -v mkfs.btrfs >/dev/null || apt-get install -y btrfs-progs
	go test -tags platform -count=1 -timeout 30m ./internal/provision/btrfs/... ./internal/replicate/trial

# These run on this machine, as root, in namespaces and control groups of their own, on loop devices.
.PHONY: test-guard
test-guard: ## How a guard finds, stops and proves the end of real writers, on this machine
	@command -v mkfs.btrfs >/dev/null || apt-get install -y btrfs-progs
	go test -tags platform -count=1 -timeout 5m ./internal/guard/...

# These run on this machine, as root, on loop devices.
.PHONY: test-disks
test-disks: bin/lab ## Simulated shared disks with block devices, and real filesystems that move from agent to agent, on this machine
	go test -tags platform -count=1 -timeout 5m ./internal/provision/shared/simdisk
	$(ENVTEST) go test -tags platform -count=1 -timeout 10m -run 'Real|NotUnmounted' ./internal/agent

# Guests with ZFS have a target of their own: the first one takes ten minutes more, to build
# its modules.
.PHONY: test-platform-zfs
test-platform-zfs: bin/lab ## Tests on real ZFS, in a guest, with a hundred trials that old bytes never show
	hack/image-zfs
	BERTH_TEST_MINUTES=30 BERTH_TEST_GUEST=--zfs hack/platform ./internal/provision/zfs $(ZFS_SUITES)=manage $(ZFS_SUITES)=faults
	BERTH_TEST_MINUTES=90 BERTH_TEST_GUEST=--zfs hack/platform $(ZFS_SUITES)=replicas
	BERTH_TEST_ROUNDS=100 BERTH_TEST_RUN=NoVolumeShows BERTH_TEST_MINUTES=25 BERTH_TEST_GUEST=--zfs hack/platform ./internal/provision/zfs

# The other tests need the lab. This test takes a cluster of its own up and down.
.PHONY: test-lab
test-lab: bin/lab ## The life of a lab, in guests and natively, its faults and its end
	go -C lab test -tags root -count=1 -timeout 20m ./internal/...
	go -C lab test -tags lab -count=1 -timeout 40m -v ./test

.PHONY: test-e2e
test-e2e: lab-tools images image-scheduler bin/kubectl-berth ## An end-to-end test of each capability, on the lab
	go run ./test/demo install $(SCHEDULERS)
	go test -tags e2e -count=1 -timeout 40m -parallel 4 -v ./test/e2e

# The schedulers that the tests use.
SCHEDULERS := scheduler.enabled=true extender.enabled=true

.PHONY: test-e2e-schedulers
test-e2e-schedulers: lab-tools images image-scheduler ## Each scheduler alone, side by side, killed again and again, and nodes that fall silent
	go run ./test/demo install $(SCHEDULERS)
	go test -tags e2e,thorough -count=1 -timeout 90m -v -run 'SingleClaims|SchedulerAlone|SideBySide|FallsSilent|SchedulerIsKilled' ./test/e2e -kills 20

.PHONY: test-e2e-space
test-e2e-space: lab-tools images ## Capacity that is published, taken and refused, a power failure, and the conformance suite of CSI where Berth runs
	mkdir -p bin/platform
	go run ./test/demo install
	go test -tags e2e,thorough -count=1 -timeout 60m -parallel 2 -v -run 'Capacity|LandElsewhere|DoesNotFit|PowerFailure' ./test/e2e
	hack/sanity

.PHONY: test-e2e-copies
test-e2e-copies: lab-tools images ## Clones of filesystems and devices, thin and thick, who may use volumes, and the filesystem that test-e2e leaves out
	go run ./test/demo install
	go test -tags e2e,thorough -count=1 -timeout 30m -parallel 2 -v -run 'AClone|^TestAccess|OtherFilesystem' ./test/e2e

# Its nodes have another kernel, so it first takes down a running lab.
.PHONY: test-e2e-zfs
test-e2e-zfs: lab-tools images ## Volumes, snapshots and clones in zpools
	bin/lab down
	BERTH_LAB_ZFS=1 go run ./test/demo install
	go test -tags e2e,thorough -count=1 -timeout 30m -parallel 2 -v -run 'Zvol|Dataset' ./test/e2e
	bin/lab down

.PHONY: test-e2e-btrfs
test-e2e-btrfs: lab-tools images ## Volumes, snapshots and clones in a filesystem of btrfs
	hack/native go test -tags e2e,thorough -count=1 -timeout 15m -v -run 'Subvolume' ./test/e2e

# The suite judges volumes of btrfs on a lab of its own, and those of LVM in guests.
.PHONY: test-upstream
test-upstream: lab-tools images ## Kubernetes' own storage suite on each kind of pools; writes docs/upstream.md
	hack/native go run ./test/upstream btrfs
	go run ./test/demo install
	go run ./test/upstream thick
	go run ./test/upstream thin
	go run ./test/upstream devices
	bin/lab down
	BERTH_LAB_ZFS=1 go run ./test/demo install
	go run ./test/upstream zvols
	go run ./test/upstream datasets
	bin/lab down

# Each older version takes ten minutes to build the first time.
.PHONY: test-versions
test-versions: lab-tools images bin/helm ## On each version of Kubernetes: API server, controllers, agents, and volumes that live and die; writes docs/versions.md
	go run ./test/versions 1.35 1.36 1.37

# One spec of each kind of those that a driver fails first.
UPSTREAM_CORE := (provision.storage.with.(pvc|snapshot).data.source|resize.volume.when.PVC.is.edited.while.pod|existing.directory|read/write.inline.ephemeral.volume)

.PHONY: test-upstream-core
test-upstream-core: lab-tools images ## Some specs of that suite, on btrfs
	hack/native go run ./test/upstream -focus '$(UPSTREAM_CORE)' btrfs

.PHONY: test-e2e-nodes
test-e2e-nodes: lab-tools images bin/kubectl-berth ## Objects that are lost and adopted, Nodes that are deleted, and pools made of disks
	go run ./test/demo install
	go test -tags e2e,thorough -count=1 -timeout 60m -v -run 'ObjectsWereLost|DeletedNodeObject|NodeIsGone|ManagedPool' ./test/e2e

.PHONY: test-e2e-restore
test-e2e-restore: lab-tools images image-scheduler bin/kubectl-berth ## An API server that goes back to an older backup, and every volume's bytes
	go run ./test/demo install scheduler.enabled=true
	go test -tags e2e,thorough -count=1 -timeout 100m -v -run 'GoesBack' ./test/e2e

# The target is in a guest of its own.
.PHONY: test-e2e-failover
test-e2e-failover: lab-tools images ## A shared disk on iSCSI whose node loses its power: the time of each step, a LUN that is wiped for its next claim, a disk that several nodes write, and a filesystem that has shut itself down
	go run ./test/demo install guard.enabled=true disk.enabled=true
	go test -tags e2e,thorough -count=1 -timeout 40m -v -run 'OutlivesTheNode|LastingReservations|OfALUN|SeveralNodesWrite|ShutItselfDown' ./test/e2e

# A CSIDriver cannot be changed, so that of the other variant goes first.
.PHONY: test-e2e-attach
test-e2e-attach: lab-tools images ## The same disks with VolumeAttachments, for clusters that want them: a move, and a loss of power
	go run ./test/demo install guard.enabled=true
	go run ./test/demo install guard.enabled=true disk.enabled=true disk.attachRequired=true
	go test -tags e2e,thorough -count=1 -timeout 40m -v -run 'WithVolumeAttachments|OutlivesTheNode' ./test/e2e
	go run ./test/demo install guard.enabled=true

# The writers that play against the faults, in an image of their own.
.PHONY: image-writer
image-writer: bin/lab
	mkdir -p bin/images
	go build $(GOFLAGS_BUILD) -o bin/writer ./test/writes/writer
	bin/lab image write bin/images/writer.tar --ref localhost/berth/writer:lab --entrypoint /writer --file /writer=bin/writer

# How many faults meet the node that writes, and from where their dice are thrown.
ROUNDS ?= 20
SEED ?= 1

# Rounds are added to those that docs/benchmarks/failover.jsonl has. A round that fails is a line, too.
.PHONY: bench-failover
bench-failover: lab-tools images image-writer ## Rounds of failover on iSCSI, each with another fault, and every write judged on the target's file (ROUNDS=20 SEED=1); writes docs/benchmarks
	go run ./test/demo install guard.enabled=true disk.enabled=true
	bin/lab load bin/images/writer.tar
	go test -tags e2e,thorough -count=1 -timeout 10h -v -run 'RoundsOfFailover' ./test/e2e \
	  -rounds $(ROUNDS) -seed $(SEED) -results $(CURDIR)/docs/benchmarks/failover.jsonl || played=$$?; \
	  go run ./test/bench/failover && exit $${played:-0}

# A round in which stock Kubernetes does not come back takes thirteen minutes, and the boot of its node.
.PHONY: bench-failover-beside
bench-failover-beside: lab-tools images image-writer ## What a failover is compared with: a plain pod, and a disk of Kubernetes' own whose node loses its power (ROUNDS=3: an hour); writes docs/benchmarks
	go run ./test/demo install guard.enabled=true disk.enabled=true
	bin/lab load bin/images/writer.tar
	go test -tags e2e,thorough -count=1 -timeout 10h -v -run 'IsComparedWith' ./test/e2e \
	  -rounds $(ROUNDS) -results $(CURDIR)/docs/benchmarks/failover-beside.jsonl || played=$$?; \
	  go run ./test/bench/failover && exit $${played:-0}

# The test makes networks and ends processes by the dozen, as root, so it has namespaces of its own: whatever ends
# the test ends everything in them.
ALONE := unshare --net --mount --pid --fork --kill-child --mount-proc

.PHONY: bench-failover-native
bench-failover-native: bin/lab bin/berth ## Rounds in which the node that writes is lost, and planned moves, with real processes on this machine: Berth's own share of a failover (ROUNDS=20 SEED=1); writes docs/benchmarks
	go build $(GOFLAGS_BUILD) -o bin/writer ./test/writes/writer
	$(ENVTEST) nice -n -5 go test -tags platform -count=1 -timeout 10h -v -exec '$(ALONE)' -run 'TakesTheDisk' ./test/takeover \
	  -rounds $(ROUNDS) -seed $(SEED) -berth $(CURDIR)/bin/berth -writer $(CURDIR)/bin/writer \
	  -results $(CURDIR)/docs/benchmarks/failover-native.jsonl -requests $(CURDIR)/docs/benchmarks/failover-native-requests.jsonl || played=$$?; \
	  go run ./test/bench/failover -native && exit $${played:-0}

# A standby has the disk before the fault, so no round waits for the cloud.
.PHONY: test-cloud
test-cloud: bin/lab bin/berth ## Rounds of the same, with a disk that a controller attaches at a simulated cloud
	go build $(GOFLAGS_BUILD) -o bin/writer ./test/writes/writer
	$(ENVTEST) go test -tags platform -count=1 -timeout 30m -v -exec '$(ALONE)' -run 'TakesTheDisk' ./test/takeover \
	  -cloud -rounds 3 -seed $(SEED) -berth $(CURDIR)/bin/berth -writer $(CURDIR)/bin/writer

.PHONY: test-e2e-separate
test-e2e-separate: lab-tools images ## The life of volumes again, with poold as a process of its own
	go run ./test/demo install agent.poold=separate
	go test -tags e2e -count=1 -timeout 40m -parallel 4 -v -run 'ALogicalVolume|WhileItIsInUse|RawBlock|OutliveTheAgent' ./test/e2e
	go run ./test/demo install agent.poold=embedded

# It runs on this machine, as root, on loop devices.
.PHONY: bench-stream
bench-stream: bin/lab ## Measure the stream of replication beside TLS, ssh, btrfs and ZFS alone, and beside writes in the foreground; writes docs/benchmarks
	@command -v mkfs.btrfs >/dev/null || apt-get install -y btrfs-progs
	@hack/ssh .cache/ssh
	BERTH_SSH=$(CURDIR)/.cache/ssh/run go run ./test/bench/stream $(BENCH_FLAGS)

# How long each fuzz target runs.
FUZZ ?= 1m

.PHONY: test-fuzz
test-fuzz: ## Each fuzz target, for a minute (FUZZ=10m for longer): reports, tables and parameters that others write
	grep -rlE '^func Fuzz' --include=*_test.go internal | while read -r file; do \
	  grep -oE '^func Fuzz[A-Za-z]+' $$file | while read -r _ target; do \
	    go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZ) ./$$(dirname $$file) </dev/null; \
	  done; \
	done

# A surviving change shows a gap in the tests, or belongs into test/mutants/survivors.txt with
# its reason.
MUTANTS ?=

.PHONY: mutants
mutants: bin/lab ## Break the code that may lose data, one small change at a time (MUTANTS="-packages REGEXP -sample N" for some)
	$(ENVTEST) go run ./test/mutants $(MUTANTS)

.PHONY: soak
soak: soak-ownership explore-ownership soak-ledger soak-shells ## The long model runs

.PHONY: soak-ownership
soak-ownership: ## A million random schedules against the ownership rules
	go run ./internal/explore/explorer -schedules 1000000

.PHONY: explore-ownership
explore-ownership: ## Every state of small worlds against the ownership rules
	go run ./internal/explore/explorer -exhaust all

.PHONY: soak-ledger
soak-ledger: ## A million random sequences against the ledger's oracle
	go test -timeout 0 -run Oracle $(ORACLE) -ledger.sequences 1000000

.PHONY: soak-shells
soak-shells: ## A hundred thousand random schedules against the shells themselves, on simulated disks (two hours)
	$(SHELLS) 100000 -timeout 0 -run 'Promises|SameStory'

.PHONY: soak-failover
soak-failover: ## A million of them (19 hours of one core, and three years of a cluster)
	$(SHELLS) 1000000 -timeout 0 -run 'Promises|SameStory'
