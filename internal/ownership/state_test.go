package ownership

import (
	"testing"

	"berth.dev/berth/internal/lineage"
)

func TestAReplicaThatIsToGoIsNoneOfTheCopies(t *testing.T) {
	for _, s := range []State{Reserved, Syncing, Ready, Lagging, Diverged, Failed, Lost} {
		if !s.counts() {
			t.Errorf("one that is %v does not count", s)
		}
	}
	for _, s := range []State{Removing, Gone} {
		if s.counts() {
			t.Errorf("one that is %v counts", s)
		}
	}
}

// The copy of node b ends with the second snapshot.
func TestANodeSeesItsCopyBesideTheNewestSnapshotThatItKnowsOf(t *testing.T) {
	e := lineage.Epoch{Number: 1, ID: "one"}
	at := func(seq uint64) lineage.Point { return lineage.Point{Epoch: e, Seq: seq} }
	recorded := func(seq uint64) func(*NodeFacts) {
		return func(f *NodeFacts) { f.Record.RecoveryPoint = at(seq) }
	}
	reported := func(seqs ...uint64) func(*NodeFacts) {
		return func(f *NodeFacts) {
			for _, seq := range seqs {
				f.Record.Replicas = append(f.Record.Replicas, Replica{Node: "other", Point: at(seq)})
			}
		}
	}
	answered := func(seqs ...uint64) func(*NodeFacts) {
		return func(f *NodeFacts) {
			for _, seq := range seqs {
				f.Peers = append(f.Peers, Peer{Node: "other", Copy: Copy{Points: []lineage.Point{at(seq)}}})
			}
		}
	}
	tests := map[string]struct {
		edits []func(*NodeFacts)
		want  State
	}{
		"no other has more":             {[]func(*NodeFacts){recorded(2), reported(2), answered(2)}, Ready},
		"one snapshot is missing":       {[]func(*NodeFacts){recorded(3), reported(3), answered(3)}, Ready},
		"two are missing by the record": {[]func(*NodeFacts){recorded(4)}, Lagging},
		"two are missing by an entry":   {[]func(*NodeFacts){reported(4, 3)}, Lagging},
		"two are missing by an answer":  {[]func(*NodeFacts){answered(4, 3)}, Lagging},
		"an entry beyond the record's lineage": {[]func(*NodeFacts){func(f *NodeFacts) {
			f.Record.Replicas = []Replica{{Point: lineage.Point{Epoch: lineage.Epoch{Number: 2, ID: "two"}, Seq: 9}}}
		}}, Ready},
		"it is mounted":           {[]func(*NodeFacts){recorded(4), func(f *NodeFacts) { f.Mounted = true }}, Ready},
		"its node owns the epoch": {[]func(*NodeFacts){recorded(4), func(f *NodeFacts) { f.Record.Primary.Node = "b" }}, Ready},
		"there is none":           {[]func(*NodeFacts){func(f *NodeFacts) { f.Copy = Copy{} }}, Lost},
		"it is empty":             {[]func(*NodeFacts){func(f *NodeFacts) { f.Copy.Points = nil }}, Syncing},
		"it has another history": {[]func(*NodeFacts){func(f *NodeFacts) {
			f.Copy.Points = []lineage.Point{{Epoch: lineage.Epoch{Number: 1, ID: "other"}, Seq: 2}}
		}}, Diverged},
		"a disk that is attached":       {[]func(*NodeFacts){func(f *NodeFacts) { f.Record.Kind, f.Disk.Link = Attachments, Attached }}, Ready},
		"a disk that is being attached": {[]func(*NodeFacts){func(f *NodeFacts) { f.Record.Kind, f.Disk.Link = Attachments, Attaching }}, Syncing},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := &Volume{Kind: Snapshots, Epoch: e, Lineage: lineage.Lineage{{Epoch: e}}, Primary: Primary{Node: "a", Phase: Active}}
			f := &NodeFacts{Me: "b", Record: v, Copy: Copy{Exists: true, Points: []lineage.Point{at(1), at(2)}}}
			for _, edit := range tt.edits {
				edit(f)
			}
			if got := observe(f); got != tt.want {
				t.Errorf("it is %v", got)
			}
		})
	}
}
