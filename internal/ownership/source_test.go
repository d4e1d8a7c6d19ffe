package ownership

import (
	"testing"

	"berth.dev/berth/internal/lineage"
)

// The copy of node c has the first two of three snapshots, and the peers have them all.
func TestACopyIsFetchedOnlyOverWhatNoPodUses(t *testing.T) {
	e := lineage.Epoch{Number: 1, ID: "one"}
	at := func(seq uint64) lineage.Point { return lineage.Point{Epoch: e, Seq: seq} }
	tests := map[string]struct {
		edit  func(*NodeFacts)
		pulls bool
	}{
		"no pod uses it":                     {func(*NodeFacts) {}, true},
		"it has writes that no snapshot has": {func(f *NodeFacts) { f.Copy.Dirty = true }, false},
		"it is mounted":                      {func(f *NodeFacts) { f.Mounted = true }, false},
		"its node may write":                 {func(f *NodeFacts) { f.Record.Primary = Primary{Node: "c", Phase: Preparing} }, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := &NodeFacts{Me: "c", Copy: Copy{Exists: true, Points: []lineage.Point{at(1), at(2)}},
				Record: &Volume{Kind: Snapshots, Epoch: e, Lineage: lineage.Lineage{{Epoch: e}}, RecoveryPoint: at(3)},
				Peers:  []Peer{{Node: "a", Copy: Copy{Points: []lineage.Point{at(1), at(2), at(3)}}}}}
			tt.edit(f)
			if a, _ := followUp(f); (a.Verb == Pull) != tt.pulls {
				t.Errorf("%v: %s", a.Verb, a.Message())
			}
		})
	}
}

func TestTheBestHolderOfASnapshotIsFoundInAnyOrder(t *testing.T) {
	p := lineage.Point{Epoch: lineage.Epoch{Number: 1, ID: "one"}, Seq: 1}
	peer := func(node string, load int, points ...lineage.Point) Peer {
		return Peer{Node: node, Load: load, Copy: Copy{Points: points}}
	}
	for want, peers := range map[int][]Peer{
		-1: {peer("a", 0)},
		0:  {peer("a", 1, p), peer("b", 2, p)},
		1:  {peer("a", 2, p), peer("b", 1, p), peer("c", 0)},
	} {
		if got, found := holderOf(&NodeFacts{Peers: peers}, p); got != want || found != (want >= 0) {
			t.Errorf("it is peer %d, not %d", got, want)
		}
	}
}

func TestADiskHoldsEveryPoint(t *testing.T) {
	if v := (&Volume{Kind: Attachments, RecoveryPoint: lineage.Point{Seq: 1}}); !v.Holds(lineage.Point{Seq: 2}) {
		t.Error("a shared disk, which has no points, does not hold one")
	}
}
