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

// empty fails if the ledger remembers anything of what came and went.
func (l *Ledger) wantEmpty(t *testing.T) {
	t.Helper()
	for what, n := range map[string]int{
		"accounts": len(l.accounts), "nodes waited for": len(l.waiting), "pods": len(l.pods), "volumes": len(l.volumes),
		"classes beside fast": len(l.classIDs) - 1, "nodes": len(l.nodes), "nodes with remains": len(l.remains),
	} {
		if n != 0 {
			t.Errorf("%d %s are kept", n, what)
		}
	}
}

func TestOfClaimsThatAreGoneNothingIsKeptWhateverNodeTheyNamed(t *testing.T) {
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
	l.wantEmpty(t)
}

func TestOfInlineVolumesNothingIsKeptWhateverClassAndNodeTheyNamed(t *testing.T) {
	l := memory(t)
	for i := range 10 {
		uid := fmt.Sprint(i)
		l.ObservePod(PodObject{UID: uid, Node: "no-node-" + uid, Inline: []InlineVolume{{Name: "v", Class: "no-class-" + uid, Bytes: 1}}})
		l.ObservePodGone(uid)
	}
	l.wantEmpty(t)
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
	l.wantEmpty(t)
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
	l.wantEmpty(t)
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
