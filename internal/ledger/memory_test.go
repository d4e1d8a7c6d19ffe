package ledger

import (
	"fmt"
	"testing"
)

// memory is a synced ledger with the class fast.
func memory(t *testing.T) *Ledger {
	t.Helper()
	l := New()
	if err := l.ObserveClass(Class{Name: "fast", InlineNamespaces: []string{"*"}}); err != nil {
		t.Fatal(err)
	}
	l.SetSynced()
	return l
}

// wantEmpty fails if the ledger remembers any object that came and went.
func wantEmpty(t *testing.T, l *Ledger) {
	t.Helper()
	for what, n := range map[string]int{
		"accounts": len(l.accounts.byOwner), "nodes waited for": len(l.waiting), "pods": len(l.pods), "volumes": len(l.volumes.byName),
		"classes beside fast": len(l.classes.ids) - 1, "nodes": len(l.nodes), "nodes with remains": len(l.remains),
		"PersistentVolumes": len(l.pvs),
	} {
		if n != 0 {
			t.Errorf("%d %s are kept", n, what)
		}
	}
}

func TestClaimsOfUnknownNodesLeaveNothingBehind(t *testing.T) {
	l := memory(t)
	for i := range 10 {
		c := ClaimObject{UID: fmt.Sprint(i), Class: "fast", Requested: 1}
		for k := range 3 {
			c.SelectedNode = fmt.Sprintf("no-node-%d-%d", i, k)
			l.ObserveClaim(c)
			if len(l.waiting) != 1 {
				t.Fatalf("one claim waits for %d nodes", len(l.waiting))
			}
		}
		l.ObserveClaimGone(c.UID)
	}
	wantEmpty(t, l)
}

func TestInlineVolumesOfUnknownClassesAndNodesLeaveNothingBehind(t *testing.T) {
	l := memory(t)
	for i := range 10 {
		uid := fmt.Sprint(i)
		l.ObservePod(PodObject{UID: uid, Node: "no-node-" + uid, Inline: []InlineVolume{{Name: "v", Class: "no-class-" + uid, Bytes: 1}}})
		l.ObservePodGone(uid)
	}
	wantEmpty(t, l)
}

func TestOfClassesThatOnlyANodeNamesNothingIsKept(t *testing.T) {
	l := memory(t)
	for i := range 10 {
		pool := Pool{Name: "vg0", Kind: Thick, Total: 1 << 30, Unit: 1, Classes: []string{fmt.Sprint("no-class-", i)}}
		if err := l.ObserveNode(Report{Node: "n", Ready: true, Pools: []Pool{pool}}); err != nil {
			t.Fatal(err)
		}
	}
	l.ObserveNodeGone("n")
	wantEmpty(t, l)
}

func TestAVolumeThatWaitsForRoomToGrowIsForgottenWithItsVolume(t *testing.T) {
	l := memory(t)
	l.ObserveVolume(VolumeObject{Name: "v", Claim: "c", Class: "fast", Capacity: 1, Replicas: []Replica{{Node: "n", Pool: "vg0", State: Ready, Actual: 1}}})
	l.ObserveClaim(ClaimObject{UID: "c", Class: "fast", Requested: 2, Bound: true})
	if len(l.waiting["n"]) != 1 {
		t.Errorf("%v wait for the node, want the volume", l.waiting["n"])
	}
	l.ObserveVolumeGone("v", 0)
	l.ObserveClaimGone("c")
	wantEmpty(t, l)
}

func TestAnInlineVolumeIsChargedOnceItsClassIsKnown(t *testing.T) {
	l := memory(t)
	pool := Pool{Name: "vg0", Kind: Thick, Total: 1 << 30, Unit: 1, Classes: []string{"late"}}
	if err := l.ObserveNode(Report{Node: "n", Ready: true, Pools: []Pool{pool}}); err != nil {
		t.Fatal(err)
	}
	l.ObservePod(PodObject{UID: "p", Node: "n", Inline: []InlineVolume{{Name: "v", Class: "late", Bytes: 5}}})
	if err := l.ObserveClass(Class{Name: "late", InlineNamespaces: []string{"*"}}); err != nil {
		t.Fatal(err)
	}
	if used := l.Pools("n")[0].Used; used != 5 {
		t.Errorf("%d are in use, want 5", used)
	}
}

// once returns a ledger with a node that has reported a pool, and a Volume on it.
func once(t *testing.T) (l *Ledger, report func(generation int64)) {
	t.Helper()
	l = memory(t)
	report = func(generation int64) {
		pool := Pool{Name: "vg0", Kind: Thick, Total: 1 << 30, Unit: 1, Classes: []string{"fast"}}
		if err := l.ObserveNode(Report{Node: "n", Generation: generation, Ready: true, Pools: []Pool{pool}}); err != nil {
			t.Fatal(err)
		}
	}
	report(1)
	l.ObserveVolume(VolumeObject{Name: "v", Claim: "c", Class: "fast", Capacity: 1, Replicas: []Replica{{Node: "n", Pool: "vg0", State: Ready, Actual: 1}}})
	return l, report
}

func TestTheRemainsOfAVolumeAreForgottenOnceItsNodeHasReported(t *testing.T) {
	for name, again := range map[string]bool{"of a Volume": false, "of a Volume that was made again": true} {
		t.Run(name, func(t *testing.T) {
			l, report := once(t)
			l.ObserveVolumeGone("v", 2)
			if again {
				l.ObserveVolume(VolumeObject{Name: "v", Class: "fast", Capacity: 1})
				l.ObserveVolumeGone("v", 3)
			}
			report(3)
			l.ObserveNodeGone("n")
			wantEmpty(t, l)
		})
	}
}

func TestOfAPersistentVolumeNothingIsKept(t *testing.T) {
	l, _ := once(t)
	l.ObservePV(PVObject{Name: "pv", Volume: "v", Claim: "c"})
	l.ObservePV(PVObject{Name: "pv", Volume: "w", Claim: "d"})
	l.ObservePVGone("pv")
	l.ObserveVolumeGone("v", 0)
	l.ObserveNodeGone("n")
	wantEmpty(t, l)
}

func TestAnObjectThatIsSeenOftenIsKeptOnce(t *testing.T) {
	l, _ := once(t)
	r, _ := l.Request(RequestOptions{Pod: "p"}, Demand{Owner: Claim("d"), Class: "fast", Bytes: 1})
	for range 3 {
		l.ObservePV(PVObject{Name: "pv", Volume: "v", Claim: "c"})
		l.ObservePod(PodObject{UID: "q", Node: "n", Inline: []InlineVolume{{Name: "i", Class: "fast", Bytes: 1}}})
		l.Reserve("n", r)
	}
	for what, n := range map[string]int{
		"PersistentVolumes of the Volume": len(l.volumes.byName["v"].pvs), "claims of the Volume": len(l.volumes.byName["v"].linked),
		"Volumes of the claim": len(l.accounts.byOwner[Claim("c")].links), "inline volumes of the pod": len(l.pods["q"].inline),
		"claims that the pod holds": len(l.pods["p"].holds), "holders": len(l.accounts.byOwner[Claim("d")].holds[0].holders),
	} {
		if n != 1 {
			t.Errorf("%d %s are kept, want 1", n, what)
		}
	}
}

func TestAVolumeOfNoClaimIsLinkedToNone(t *testing.T) {
	l := memory(t)
	l.ObserveVolume(VolumeObject{Name: "v", Class: "fast", Capacity: 1})
	if len(l.accounts.byOwner) != 0 {
		t.Errorf("the ledger knows the claims %v", l.accounts.byOwner)
	}
}

func TestAVolumeThatIsToGrowNoFurtherWaitsForNoNode(t *testing.T) {
	for name, asked := range map[string]struct{ before, now int64 }{"it has what its claim asks for": {0, 1}, "it was granted that": {2, 2}} {
		t.Run(name, func(t *testing.T) {
			l, _ := once(t)
			l.ObserveClaim(ClaimObject{UID: "c", Class: "fast", Requested: asked.before, Bound: true})
			if err := l.ObserveNode(Report{Node: "n", Generation: 1}); err != nil { // not ready, and without the pool
				t.Fatal(err)
			}
			l.ObserveClaim(ClaimObject{UID: "c", Class: "fast", Requested: asked.now, Bound: true})
			if len(l.waiting) != 0 {
				t.Errorf("%v wait", l.waiting)
			}
		})
	}
}
