package ledger_test

import (
	"fmt"
	"runtime"
	"syscall"
	"testing"
	"time"

	"berth.dev/berth/internal/ledger"
)

// The machine that measures may be busy with other things, so besides wall time
// each benchmark prints the processor time it took itself.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}

func measure(b *testing.B, f func(i int)) {
	b.ReportAllocs()
	start, i := processorTime(), 0
	for b.Loop() {
		f(i)
		i++
	}
	b.ReportMetric(float64(processorTime()-start)/float64(i), "cpu-ns/op")
}

func nodeName(i int) string { return fmt.Sprintf("node-%05d", i) }

func claimUID(i int) string { return fmt.Sprintf("0b7c5f34-6f0e-4b57-9c0e-%012d", i) }

// bigCluster has nodes with two volume groups each and volumes spread over them,
// each with its claim and its PersistentVolume, as after a restart.
func bigCluster(tb testing.TB, nodes, volumes int) *ledger.Ledger {
	l := ledger.New()
	for _, name := range []string{"fast", "bulk"} {
		if err := l.ObserveClass(ledger.Class{Name: name, Spare: gib}); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range nodes {
		r := report(nodeName(i), volumeGroup("vg-nvme", 40_000*gib, "fast"), volumeGroup("vg-hdd", 8000*gib, "fast", "bulk"))
		if err := l.ObserveNode(r); err != nil {
			tb.Fatal(err)
		}
	}
	for i := range volumes {
		observeOne(l, i, nodeName(i%nodes))
	}
	l.SetSynced()
	return l
}

func observeOne(l *ledger.Ledger, i int, node string) {
	uid := claimUID(i)
	name := "pvc-" + uid
	l.ObserveVolume(ledger.VolumeObject{Name: name, Claim: uid, Class: "fast", Capacity: 10 * gib, Replicas: []ledger.Replica{
		{Node: node, Pool: "vg-nvme", State: ledger.Ready, Actual: 10 * gib},
	}})
	l.ObservePV(ledger.PVObject{Name: name, Volume: name, Claim: uid})
	l.ObserveClaim(ledger.ClaimObject{UID: uid, Class: "fast", Requested: 10 * gib, SelectedNode: node, Bound: true})
}

func demands(n int) []ledger.Demand {
	var all []ledger.Demand
	for i := range n {
		all = append(all, claimed(claimUID(1<<30+i), int64(10+i)*gib))
	}
	return all
}

func BenchmarkFit(b *testing.B) {
	l := bigCluster(b, 1000, 20_000)
	nodes := make([]*ledger.Node, 1000)
	for i := range nodes {
		nodes[i] = l.Node(nodeName(i))
	}
	huge := claimed("huge", 1<<50)
	for name, asked := range map[string][]ledger.Demand{
		"one claim": demands(1), "three claims": demands(3), "eight claims": demands(8), "one claim too large": {huge},
	} {
		r, _ := l.Request(ledger.RequestOptions{Pod: "p"}, asked...)
		b.Run(name, func(b *testing.B) { measure(b, func(i int) { nodes[i%1000].Fit(r) }) })
	}
}

func BenchmarkScore(b *testing.B) {
	l := bigCluster(b, 1000, 20_000)
	r, _ := l.Request(ledger.RequestOptions{Pod: "p"}, demands(3)...)
	n := l.Node(nodeName(7))
	measure(b, func(int) { n.Score(r) })
}

// BenchmarkPlan measures a pod whose three volumes have two replicas each, in a cluster of 1,000 nodes.
func BenchmarkPlan(b *testing.B) {
	l, asked := bigCluster(b, 1000, 20_000), demands(3)
	for i := range asked {
		asked[i].Factor = 2
	}
	r, _ := l.Request(ledger.RequestOptions{Pod: "p"}, asked...)
	s, n := l.Snapshot(), l.Node(nodeName(7))
	b.Run("of all nodes", func(b *testing.B) { measure(b, func(int) { s.Plan(r) }) })
	p := s.Plan(r)
	b.Run("fit on a node", func(b *testing.B) { measure(b, func(int) { p.Fit(n) }) })
	b.Run("score of a node", func(b *testing.B) { measure(b, func(int) { p.Score(n) }) })
	b.Run("reserve and unreserve", func(b *testing.B) {
		measure(b, func(int) {
			if _, verdict := l.Reserve(n.Name(), r); !verdict.Fits() {
				b.Fatal(verdict)
			}
			l.Unreserve("p", n.Name())
		})
	})
}

func BenchmarkRequest(b *testing.B) {
	l, asked := bigCluster(b, 10, 200), demands(3)
	measure(b, func(int) { l.Request(ledger.RequestOptions{Pod: "p"}, asked...) })
}

func BenchmarkReserveAndUnreserve(b *testing.B) {
	for _, perNode := range []int{20, 200, 2000} {
		l := bigCluster(b, 10, 10*perNode)
		for _, n := range []int{1, 3} {
			r, _ := l.Request(ledger.RequestOptions{Pod: "p"}, demands(n)...)
			b.Run(fmt.Sprintf("%d claims, %d volumes on the node", n, perNode), func(b *testing.B) {
				measure(b, func(i int) {
					node := nodeName(i % 10)
					if _, verdict := l.Reserve(node, r); !verdict.Fits() {
						b.Fatal(verdict)
					}
					l.Unreserve("p", node)
				})
			})
		}
	}
}

func BenchmarkObserveReport(b *testing.B) {
	l := bigCluster(b, 10, 200)
	r := report(nodeName(3), volumeGroup("vg-nvme", 40_000*gib, "fast"), volumeGroup("vg-hdd", 8000*gib, "fast", "bulk"))
	measure(b, func(int) { _ = l.ObserveNode(r) })
}

func BenchmarkSnapshot(b *testing.B) {
	l := bigCluster(b, 5000, 0)
	measure(b, func(int) { l.Snapshot() })
}

// BenchmarkRebuild measures a restart: 5,000 nodes and 100,000 volumes, each with a
// claim and a PersistentVolume.
func BenchmarkRebuild(b *testing.B) {
	const nodes, volumes = 5000, 100_000
	var before, after runtime.MemStats
	var kept *ledger.Ledger
	measure(b, func(int) {
		kept = nil
		runtime.GC()
		runtime.ReadMemStats(&before)
		kept = bigCluster(b, nodes, volumes)
	})
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/volumes, "bytes/volume")
	runtime.KeepAlive(kept)
}
