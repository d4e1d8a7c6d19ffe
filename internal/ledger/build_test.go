package ledger_test

import (
	"slices"
	"testing"

	"berth.dev/berth/internal/ledger"
)

const (
	mib = int64(1) << 20
	gib = int64(1) << 30
)

// cluster is a ledger under test, with the node n1 and its volume group vg0 of
// 10 GiB, which serves the class fast, unless options say otherwise.
type cluster struct {
	*ledger.Ledger
	t *testing.T
}

func newCluster(t *testing.T, reports ...ledger.Report) *cluster {
	t.Helper()
	c := &cluster{ledger.New(), t}
	c.class(ledger.Class{Name: "fast", InlineNamespaces: []string{"*"}})
	if len(reports) == 0 {
		reports = []ledger.Report{report("n1", volumeGroup("vg0", 10*gib))}
	}
	for _, r := range reports {
		c.report(r)
	}
	c.SetSynced()
	return c
}

func (c *cluster) class(x ledger.Class) {
	c.t.Helper()
	if err := c.ObserveClass(x); err != nil {
		c.t.Fatal(err)
	}
}

func (c *cluster) report(r ledger.Report) {
	c.t.Helper()
	if err := c.ObserveNode(r); err != nil {
		c.t.Fatal(err)
	}
}

func report(node string, pools ...ledger.Pool) ledger.Report {
	return ledger.Report{Node: node, Generation: 1, Ready: true, Pools: pools}
}

func volumeGroup(name string, total int64, classes ...string) ledger.Pool {
	if len(classes) == 0 {
		classes = []string{"fast"}
	}
	return ledger.Pool{Name: name, Kind: ledger.Thick, Total: total, Unit: 4 * mib, Classes: classes}
}

func disk(name string, total int64, media string, classes ...string) ledger.Pool {
	return ledger.Pool{Name: name, Kind: ledger.Device, Total: total, Unit: 1, Media: media, Classes: classes}
}

func claimed(uid string, bytes int64) ledger.Demand {
	return ledger.Demand{Owner: ledger.Claim(uid), Class: "fast", Bytes: bytes}
}

func inline(pod, name string, bytes int64) ledger.Demand {
	return ledger.Demand{Owner: ledger.Inline(pod, name), Class: "fast", Bytes: bytes}
}

func volume(claim, node, pool string, bytes int64, state ledger.ReplicaState) ledger.VolumeObject {
	v := ledger.VolumeObject{Name: "pvc-" + claim, Claim: claim, Class: "fast", Capacity: bytes}
	v.Replicas = []ledger.Replica{{Node: node, Pool: pool, State: state}}
	if state == ledger.Ready {
		v.Replicas[0].Actual = bytes
	}
	return v
}

func (c *cluster) request(pod string, demands ...ledger.Demand) *ledger.Request {
	r, _ := c.Request(ledger.RequestOptions{Pod: pod}, demands...)
	return r
}

// fits asks whether the demands of a pod fit on the node.
func (c *cluster) fits(pod, node string, demands ...ledger.Demand) ledger.Verdict {
	return c.Node(node).Fit(c.request(pod, demands...))
}

// reserve must succeed; it returns the pools by owner.
func (c *cluster) reserve(pod, node string, demands ...ledger.Demand) map[ledger.Owner]string {
	c.t.Helper()
	choices, verdict := c.Reserve(node, c.request(pod, demands...))
	if !verdict.Fits() {
		c.t.Fatalf("reserving for %s on %s: %v (%v)", pod, node, verdict.Reason, verdict.Owner)
	}
	pools := map[ledger.Owner]string{}
	for _, x := range choices {
		pools[x.Owner] = x.Pool
	}
	return pools
}

// used is how much of a pool is taken.
func (c *cluster) used(node, pool string) int64 {
	for _, p := range c.Pools(node) {
		if p.Pool.Name == pool {
			return p.Used
		}
	}
	return 0
}

// charges are the charges to a pool, by owner.
func (c *cluster) charges(node, pool string) map[ledger.Owner]int64 {
	found := map[ledger.Owner]int64{}
	for _, p := range c.Pools(node) {
		for _, f := range p.Facts {
			if p.Pool.Name == pool {
				found[f.Owner] = f.Charge
			}
		}
	}
	return found
}

func (c *cluster) wantUsed(node, pool string, want int64) {
	c.t.Helper()
	if got := c.used(node, pool); got != want {
		c.t.Errorf("%d MiB of %s/%s are in use, want %d; charged: %v", got/mib, node, pool, want/mib, c.charges(node, pool))
	}
}

func (c *cluster) wantReason(got ledger.Verdict, want ledger.Reason) {
	c.t.Helper()
	if got.Reason != want {
		c.t.Errorf("the verdict is %v (%v), want %v", got.Reason, got.Owner, want)
	}
}

func sorted(pools map[ledger.Owner]string) []string {
	var names []string
	for _, name := range pools {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
