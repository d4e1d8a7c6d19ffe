package ownership

import "berth.dev/berth/internal/lineage"

// followUp pulls snapshots that a peer has and this node lacks. Recorded numbers do
// not matter here, nor does the primary: any peer that holds something newer of
// this lineage will do.
func followUp(f *NodeFacts) (Action, bool) {
	v, c := f.Record, &f.Copy
	if !f.traits().Data || f.Mounted || c.Dirty || v.ownedBy(f.Me) {
		return next()
	}
	mine := v.Newest(c.Points)
	best := -1
	var target lineage.Point
	for i := range f.Peers {
		p := v.Newest(f.Peers[i].Copy.Points)
		if p.Seq <= mine.Seq || !roomFor(f, i) {
			continue
		}
		if p.Seq > target.Seq || p.Seq == target.Seq && better(f, i, best) {
			best, target = i, p
		}
	}
	if best < 0 {
		return next()
	}
	return pull(f, best, target)
}

// better prefers a source that can serve an increment, then a near one, then the
// least loaded; equals go by name, so that every node answers alike.
func better(f *NodeFacts, i, j int) bool {
	a, b := &f.Peers[i], &f.Peers[j]
	if x, y := a.Copy.Has(f.Copy.Tip()), b.Copy.Has(f.Copy.Tip()); x != y {
		return x
	}
	if a.Near != b.Near {
		return a.Near
	}
	if a.Load != b.Load {
		return a.Load < b.Load
	}
	return a.Node < b.Node
}

// holderOf finds the best peer that holds exactly this point, and whose data has room here.
func holderOf(f *NodeFacts, p lineage.Point) (int, bool) {
	best := -1
	for i := range f.Peers {
		if f.Peers[i].Copy.Has(p) && roomFor(f, i) && (best < 0 || better(f, i, best)) {
			best = i
		}
	}
	return best, best >= 0
}

// pull asks for an increment if the source has our newest snapshot, else for a
// full copy that replaces ours only when it is whole.
func pull(f *NodeFacts, from int, to lineage.Point) (Action, bool) {
	base := f.Copy.Tip()
	if !f.Peers[from].Copy.Has(base) {
		base = lineage.Point{}
	}
	node := f.Peers[from].Node
	return Action{Verb: Pull, From: node, Base: base, To: to, Why: Why{Reason: CatchingUp, Node: node, Point: to}}, true
}
