package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"berth.dev/berth/test/figures"
)

// write writes the page and its chart.
func (r *results) write() error {
	var page, chart bytes.Buffer
	if err := r.page(&page); err != nil {
		return err
	}
	figures.Bars(&chart, "pods bound a second, by scheduler, volumes and number of nodes", "pods/s", r.bars())
	for name, content := range map[string]*bytes.Buffer{"scheduling.md": &page, "scheduling.svg": &chart} {
		path := filepath.Join(r.out, name)
		if err := os.WriteFile(path, content.Bytes(), 0o644); err != nil { //nolint:gosec // it is for everyone to read
			return fmt.Errorf("writing %s: %w", path, err)
		}
		fmt.Fprintln(os.Stderr, "wrote", path)
	}
	return nil
}

const introduction = `# What scheduling costs

Measured by %s: real etcd, kube-apiserver %s and schedulers as processes, on %s, Linux %s, in %s.
There were up to %d rounds; one scheduler runs at a time, and all are measured in every round. Other programs used up to %.0f %% of what was
used of the processors meanwhile. Everything shares them - etcd and the API server, which take most where no volume is compared with published
capacity, too - so read pods a second as ratios; the scheduler's own processor time depends less on it.

- **plugin** is berth-scheduler with the chart's profile, **stock** the same program with kube-scheduler's own profile, which compares claims with one
  CSIStorageCapacity object for each node, and **extender** that profile with an extender in the style of TopoLVM's and open-local's, built for this
  comparison: it is sent whole nodes, compares annotations, and sends nodes back. Nothing else of their configuration differs.
- **Nodes** are objects: a Node of %.1f KiB as JSON (%d images; a kubelet reports up to 50), CSINode, StorageNode with one pool that has room for %d
  volumes, CSIStorageCapacity, and a Lease. Nobody renews Leases or Nodes.
- **Agents and provisioner** are simulated and the same for all: a volume is carved and its claim bound as fast as the API server takes the writes, and
  what a node has free is published at once. A refused volume is a failed provision.
- **Pods a second**: pods are created as fast as the API server takes them, their claims before; counted from the first that is bound to the last, after
  pods that are not counted, when the scheduler has come to rest after its start. Before the rounds a burst of pods without claims and one of pods with
  claims do not count: meanwhile the API server ends watches, as it learns how much there is to tell. A side that is slow is given fewer pods. **Alone**: from a pod's creation to its binding, one pod after the other.
- Ratios are geometric means of the rounds' ratios, their intervals bootstraps over the rounds.
- How long a pod with a claim takes to run on a node is not measured here: [provision.md](provision.md).
`

func (r *results) page(w *bytes.Buffer) error {
	size, err := json.Marshal(node(1))
	if err != nil {
		return err
	}
	fmt.Fprintf(w, introduction, "`make bench-scheduling`", r.version, processorName(), kernelName(), r.took.Round(time.Second), r.rounds, 100*r.others,
		float64(len(size))/1024, images, room/volumeBytes)
	fmt.Fprintf(w, "\n## Compared\n\n")
	r.comparisonsTable().Print(w)
	fmt.Fprintf(w, "\n![pods bound a second](scheduling.svg)\n")
	for _, nodes := range r.sizes {
		fmt.Fprintf(w, "\n## %d nodes\n\nMedian of the rounds; of all pods alone.\n\n", nodes)
		r.sidesTable(nodes).Print(w)
	}
	last := r.sizes[len(r.sizes)-1]
	fmt.Fprintf(w, "\n## Pods without volumes\n\nOn %d nodes, as the schedulers count. Of the calls of a plugin the scheduler times one cycle in ten.\n\n", last)
	r.skipTable(last).Print(w)
	fmt.Fprintf(w, "\n## Writes\n\nRequests for each pod that change something, on %d nodes, those of the simulated agents and provisioner included; `POST pods` is the benchmark's.\n\n", last)
	r.writesTable(last).Print(w)
	fmt.Fprintf(w, "\n## The ledger\n\nBy Go benchmarks; processor time.\n\n")
	r.ledgerTable().Print(w)
	return nil
}

// processorName is the number and the model of the processors.
func processorName() string {
	name := runtime.GOARCH
	data, err := os.ReadFile("/proc/cpuinfo")
	if err == nil {
		for line := range strings.Lines(string(data)) {
			if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
				name = strings.TrimSpace(value)
				break
			}
		}
	}
	return fmt.Sprintf("%d processors (%s)", runtime.NumCPU(), name)
}

func kernelName() string {
	data, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "of unknown release"
	}
	return strings.TrimSpace(string(data))
}
