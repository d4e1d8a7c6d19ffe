package rounds

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"

	"berth.dev/berth/test/figures"
)

// Native writes the page of the rounds with real processes of one machine.
func Native(w io.Writer, all []Round, quiet []Requests) {
	fmt.Fprintf(w, `# Failover of a shared disk, natively

Measured by `+"`make bench-failover-native`"+`: how long Berth itself takes. A real etcd and a real API server, two
controllers, and three nodes, each with a guard and an agent of shared disks, are processes of one machine with 2
processors. Other programs use the machine, too, and these processes go before them (nice -5). Each node has
namespaces of its own for its network, processes and mounts. In a round the node that writes is lost: its link
goes down, and then all its processes are killed at once. In half of these rounds one of the two controllers
runs on it. In the rounds between them nothing is lost, and the volume moves as planned.

The volume is a raw block volume on a simulated disk, whose file is in memory. The bench plays the scheduler and
the StatefulSet, which act at once, and a kubelet that makes no containers. That kubelet repeats a call that
failed after the pauses of a real one (0.5 s, then twice as long each time), and these are in the times. The
writer syncs and acknowledges each record, and pauses for 0.1 s. After each round the bench judges the records
of the file as `+"`hack/verify-lun`"+` does. Each round is a line of `+"`failover-native.jsonl`"+`: all rounds since the
code of failover last changed, those that failed included. The requests of a cluster at rest, which the last table
counts, are in `+"`failover-native-requests.jsonl`"+`.

`)
	sums(w, all)
	lost, planned := parted(all)
	fmt.Fprintf(w, "\n## From the loss of the node to the staged volume\n\nSeconds.\n\n")
	staged(lost).Print(w)
	fmt.Fprintf(w, "\n## Steps\n\nSeconds after the loss.\n\n")
	steps(lost).Print(w)
	fmt.Fprintf(w, `
## A planned move

The node is cordoned, and the bench ends its pod as a kubelet does after an eviction. Seconds after the writer has
ended. Nothing is attached or detached on the way: a move fails if one of the attachments is not ready all the
time.

`)
	steps(planned).Print(w)
	fmt.Fprintf(w, `
## Requests that change something

The API server counts them itself. First those of a failover, from the loss to the next writer's first write. The
pods are the work of the scheduler and the StatefulSet as well.

`)
	perFailover(lost).Print(w)
	fmt.Fprintf(w, `
Then those of a cluster in which nothing happens. The bench counts the renewals of each Lease for two minutes,
before the first pod is there and while one writes, and computes from them what a hundred nodes would write. An
agent of pools renews its Lease, too; here it is played, at its pace.

`)
	atRest(quiet).Print(w)
	failures(w, all)
}

// staged is a row for each fault, and one for all of them.
func staged(all []Round) *figures.Table {
	byFault := map[string][]time.Duration{}
	every := []time.Duration{}
	for i := range all {
		for _, s := range all[i].Steps {
			if s.Name == Staged {
				byFault[all[i].Fault] = append(byFault[all[i].Fault], duration(s.After))
				every = append(every, duration(s.After))
			}
		}
	}
	t := &figures.Table{Head: []string{"what is lost", "rounds", "p50", "p95", "max"}}
	add := func(name string, took []time.Duration) {
		t.Add(name, strconv.Itoa(len(took)), quantile(took, 0.5), quantile(took, 0.95), quantile(took, 1))
	}
	for _, fault := range slices.Sorted(maps.Keys(byFault)) {
		add(fault, byFault[fault])
	}
	add("all rounds", every)
	return t
}
