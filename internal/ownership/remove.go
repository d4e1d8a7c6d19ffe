package ownership

import (
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
)

// Removing a replica takes two phases. In the first an entry of the record becomes
// Removing by compare-and-swap, if enough others remain. From then on no other
// removal counts it, so of two removals that need each other one is refused. In the
// second the node reads the record again, asks the others to show and to hold the
// same data, moves its copy to the trash, waits, asks once more and destroys it.

// Grace is how long a condemned copy stays in the trash. HoldFor is how long a peer
// keeps data that it confirmed.
const (
	Grace   = time.Hour
	HoldFor = 10 * time.Minute
)

// WithHold returns the holds of a copy with one more, or with another deadline for it. Of its other holds an owner keeps
// those of the two newest points: what a receiver has, and what it is sent. So holds do not add up while an owner
// follows, and no owner fills the record. points are those of the copy, in their order.
func WithHold(holds []Hold, h Hold, points []lineage.Point) []Hold {
	var newest []lineage.Point
	for _, p := range slices.Backward(points) {
		if p != h.Point && len(newest) < 2 && slices.ContainsFunc(holds, func(o Hold) bool { return o.For == h.For && o.Point == p }) {
			newest = append(newest, p)
		}
	}
	out := make([]Hold, 0, len(holds)+1)
	for _, o := range holds {
		if o.For != h.For || slices.Contains(newest, o.Point) {
			out = append(out, o)
		}
	}
	return append(out, h)
}

// Confirm answers a peer that wants to destroy its copy of everything up to p. True
// means that this node has that data and keeps it for HoldFor. This node may be
// about to condemn its own copy: a restored backup can make two nodes each believe
// that it is the one to go. Each asks again before it destroys, and then finds the
// other condemned.
func Confirm(c *Copy, asker string, p lineage.Point, now time.Time) (Hold, bool) {
	if !c.Exists || c.Condemned || c.Quarantined {
		return Hold{}, false
	}
	if !c.Has(p) && !(c.Promise.Lineage.Contains(p) && c.Promise.Lineage.Contains(c.Tip()) && c.Tip().Seq >= p.Seq) {
		return Hold{}, false
	}
	return Hold{For: asker, Point: p, Until: now.Add(HoldFor)}, true
}

// remaining counts the others that hold everything of the volume that the node
// holds, by their own answers now. The node itself never counts.
func remaining(v *Volume, node string, need lineage.Point, peers []Peer) int {
	if end := v.end(); end.Seq > need.Seq {
		need = end
	}
	count := 0
	for i := range peers {
		p := &peers[i]
		e, ok := v.Replica(p.Node)
		if p.Node == node || !ok || !e.State.counts() || !p.Confirmed || p.Copy.Condemned {
			continue
		}
		if tip := v.Newest(p.Copy.Points); !tip.IsZero() && tip.Seq >= need.Seq {
			count++
		}
	}
	return count
}

func enough(v *Volume, node string, need lineage.Point, peers []Peer) (int, bool) {
	n := remaining(v, node, need, peers)
	return n, n >= max(1, v.Factor)
}

// here tells whether the node has a replica, or may have a part of one: a first stream may have left data in a copy that
// holds nothing yet.
func (f *NodeFacts) here() bool {
	if f.traits().Data {
		return f.Copy.Exists || f.Copy.Size > 0
	}
	return f.Disk.Link != Detached
}

// leave carries out the second phase.
func leave(f *NodeFacts) (Action, bool) {
	v, c := f.Record, &f.Copy
	e, _ := v.Replica(f.Me)
	if e.State == Gone {
		return Action{Verb: Nothing, Why: Why{Reason: CopyGone, Node: f.Me}}, true
	}
	if e.State != Removing {
		return next()
	}
	if f.Mounted || v.ownedBy(f.Me) {
		return stay(f, Why{Reason: CopyInUse}) // an owner's entry never goes: its end is reported there
	}
	if !f.here() {
		return record(v.with(func(n *Volume) { n.entry(f.Me).State = Gone }), Why{Reason: CopyGone, Node: f.Me})
	}
	if !f.traits().Data {
		return detach(f)
	}
	n, ok := enough(v, f.Me, v.Newest(c.Points), f.Peers)
	if !ok && c.Exists { // what was never filled holds nothing that others need
		return stay(f, Why{Reason: TooFewOthers, Count: n})
	}
	return discard(f, Why{Reason: Unneeded, Node: f.Me, Count: n})
}

// stay takes the removal back. The copy leaves the trash before the record
// counts it again.
func stay(f *NodeFacts, why Why) (Action, bool) {
	if f.Copy.Condemned {
		return Action{Verb: Reprieve, Why: why}, true
	}
	return record(f.Record.with(func(n *Volume) { n.entry(f.Me).State = Syncing }), why)
}

// discard condemns, waits and destroys.
func discard(f *NodeFacts, why Why) (Action, bool) {
	c := &f.Copy
	switch {
	case !c.Condemned:
		return Action{Verb: Condemn, Until: f.Now.Add(Grace), Why: why}, true
	case c.DestroyAt.After(f.Now):
		return wait(Why{Reason: InTrash})
	}
	return Action{Verb: Destroy, Why: why}, true
}

// removeAll marks every replica of a volume that is being deleted, but not its owner's: that node lets
// go first.
func removeAll(f *ControllerFacts) (Action, bool) {
	v := f.Record
	goes := func(e *Replica) bool { return e.State.counts() && !v.ownedBy(e.Node) }
	for i := range v.Replicas {
		if !v.Deleting || !goes(&v.Replicas[i]) {
			continue
		}
		return record(v.with(func(n *Volume) {
			for i := range n.Replicas {
				if goes(&n.Replicas[i]) {
					n.Replicas[i].State = Removing
				}
			}
		}), Why{Reason: VolumeDeleting})
	}
	return next()
}

// deleteCopy destroys the copy of a volume that is being deleted, the one decision
// that needs no other copies.
func deleteCopy(f *NodeFacts) (Action, bool) {
	e, _ := f.Record.Replica(f.Me)
	if !f.Record.Deleting || f.Mounted || e.State != Removing {
		return next()
	}
	switch why := (Why{Reason: VolumeDeleting}); {
	case f.here() && f.traits().Data:
		return discard(f, why)
	case f.here():
		return Action{Verb: Detach, Why: why}, true
	}
	return record(f.Record.with(func(n *Volume) { n.entry(f.Me).State = Gone }), Why{Reason: CopyGone, Node: f.Me})
}

// reprieve takes a copy out of the trash, or out of quarantine, when the record
// counts on it.
func reprieve(f *NodeFacts) (Action, bool) {
	if !f.Copy.Condemned && !f.Copy.Quarantined || f.Record.Deleting {
		return next()
	}
	return Action{Verb: Reprieve, Why: Why{Reason: CountedOn}}, true
}
