package ownership_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/lineage"
	. "berth.dev/berth/internal/ownership"
)

var (
	e1  = lineage.Epoch{Number: 1, ID: "one"}
	e2  = lineage.Epoch{Number: 2, ID: "two"}
	e3  = lineage.Epoch{Number: 3, ID: "three"}
	now = time.Unix(1_000_000, 0)
)

func at(e lineage.Epoch, seq uint64) lineage.Point { return lineage.Point{Epoch: e, Seq: seq} }

func points(e lineage.Epoch, seqs ...uint64) (out []lineage.Point) {
	for _, s := range seqs {
		out = append(out, at(e, s))
	}
	return out
}

// volume is released at snapshot 3 of epoch 1, with ready replicas on a, b and c.
func volume(edits ...func(*Volume)) *Volume {
	v := &Volume{Kind: Snapshots, Factor: 3, Epoch: e1, Clean: true, RecoveryPoint: at(e1, 3),
		Lineage:  lineage.Lineage{{Epoch: e1}},
		Primary:  Primary{Node: "a", Boot: "boot1", Phase: Released},
		Failover: Failover{Automatic: true, MaxDataLoss: 5 * time.Minute}}
	for _, n := range []string{"a", "b", "c"} {
		v.Replicas = append(v.Replicas, Replica{Node: n, State: Ready, Point: at(e1, 3)})
	}
	for _, edit := range edits {
		edit(v)
	}
	return v
}

// owned makes a the owner of epoch 2.
func owned(phase Phase) func(*Volume) {
	return func(v *Volume) {
		v.Epoch, v.Primary.Phase = e2, phase
		v.Lineage = v.Lineage.Extend(lineage.Branch{Epoch: e2, From: v.RecoveryPoint})
	}
}

func entry(node string, edit func(*Replica)) func(*Volume) {
	return func(v *Volume) {
		for i := range v.Replicas {
			if v.Replicas[i].Node == node {
				edit(&v.Replicas[i])
			}
		}
	}
}

func state(node string, s State) func(*Volume) {
	return entry(node, func(r *Replica) { r.State = s })
}

func shared(v *Volume) {
	v.Kind, v.RecoveryPoint = Attachments, lineage.Point{}
	v.Sharing = Sharing{MaxShares: 3, Persistent: true}
	for i := range v.Replicas {
		v.Replicas[i].Point = lineage.Point{}
	}
	v.Lineage = lineage.Lineage{{Epoch: v.Epoch}}
}

// many lets several nodes write the disk. Node a has released epoch 1.
func many(v *Volume) {
	shared(v)
	v.Sharing.ManyWriters = true
}

// writing gives the node an epoch of its own, which is newer than those before.
func writing(node string, e lineage.Epoch, phase Phase) func(*Volume) {
	return func(v *Volume) {
		before := Writer{Primary: v.Primary, Epoch: v.Epoch, FenceRequest: v.FenceRequest}
		v.Writers = slices.DeleteFunc(append(slices.Clone(v.Writers), before), func(w Writer) bool { return w.Primary.Node == node })
		slices.SortFunc(v.Writers, func(a, b Writer) int { return strings.Compare(a.Primary.Node, b.Primary.Node) })
		v.Primary, v.Epoch, v.FenceRequest = Primary{Node: node, Boot: "boot1", Phase: phase}, e, FenceRequest{}
		v.Keys = append(v.Keys, Key{Node: node, Epoch: e})
	}
}

// asked asks the executor to shut the writer out.
func asked(executor, writer string) func(*Volume) {
	return func(v *Volume) { *v = *v.On(writer).RequestFence(executor).Stored() }
}

// reserved has the disk reserved for all that are registered, the node's session under mine among them. The last
// key is that of the holder.
func reserved(mine Key, others ...Key) func(*NodeFacts) {
	return func(f *NodeFacts) {
		f.Copy.Points = nil
		f.Disk = Disk{Link: Attached, Registered: mine.Raw(), Registrants: true}
		for _, k := range append([]Key{mine}, others...) {
			if k != (Key{}) {
				f.Disk.Keys, f.Disk.Holder = append(f.Disk.Keys, k.Raw()), k.Raw()
			}
		}
	}
}

// replica is a copy with snapshots 1 to 3 of epoch 1 that has promised epoch 1.
func replica(edits ...func(*Copy)) Copy {
	c := Copy{Exists: true, Points: points(e1, 1, 2, 3), Promise: Promise{Epoch: e1, Lineage: lineage.Lineage{{Epoch: e1}}}}
	for _, edit := range edits {
		edit(&c)
	}
	return c
}

// promised lets the copy know the record's epoch.
func promised(v *Volume) func(*Copy) {
	return func(c *Copy) {
		c.Promise = Promise{Epoch: v.Epoch, Primary: v.Primary.Node, Boot: v.Primary.Boot, Lineage: v.Lineage}
	}
}

func opened(e lineage.Epoch) func(*Copy) { return func(c *Copy) { c.Opened = e } }

// on are the facts of a node with a good copy, two peers like it, and a boot id boot1.
func on(node string, v *Volume, edits ...func(*NodeFacts)) *NodeFacts {
	f := &NodeFacts{Me: node, Boot: "boot1", Now: now, Record: v, Absent: v == nil, Copy: replica(), FreshID: "fresh", Keep: 2}
	for _, n := range []string{"a", "b", "c"} {
		if n != node {
			f.Peers = append(f.Peers, Peer{Node: n, Copy: replica(), Confirmed: true})
		}
	}
	for _, edit := range edits {
		edit(f)
	}
	return f
}

func unread(f *NodeFacts)  { f.Record, f.Absent = nil, false }
func wanted(f *NodeFacts)  { f.Wanted = true }
func mounted(f *NodeFacts) { f.Mounted = true }
func alone(f *NodeFacts)   { f.Peers = nil }

func with(edits ...func(*Copy)) func(*NodeFacts) {
	return func(f *NodeFacts) { f.Copy = replica(edits...) }
}

// attached gives the node a session that has no registration.
func attached(holder Key) func(*NodeFacts) {
	return func(f *NodeFacts) {
		f.Disk, f.Copy.Points = Disk{Link: Attached, Holder: holder.Raw()}, nil
		f.Record.Keys = append(f.Record.Keys, holder)
	}
}

// registered lets the target know the node's session, and holding lets that session hold the
// reservation.
func registered(k Key) func(*NodeFacts) { return func(f *NodeFacts) { f.Disk.Registered = k.Raw() } }
func holding(k Key) func(*NodeFacts) {
	return func(f *NodeFacts) {
		attached(k)(f)
		f.Disk.Registered, f.Disk.Holding = k.Raw(), true
	}
}

func link(l Link) func(*NodeFacts) { return func(f *NodeFacts) { f.Disk.Link = l } }

type verdict struct {
	Verb   Verb
	Reason Reason
}

func expect(t *testing.T, got Action, want verdict) {
	t.Helper()
	if diff := cmp.Diff(want, verdict{got.Verb, got.Reason}); diff != "" {
		t.Errorf("decision mismatch (-want +got):\n%s%s", diff, got.Message())
	}
}
