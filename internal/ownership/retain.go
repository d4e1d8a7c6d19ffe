package ownership

import (
	"cmp"
	"slices"

	"berth.dev/berth/internal/lineage"
)

// retain drops snapshots that are not needed. It keeps the newest, the recovery
// point, those held for others, the newest the volume still holds, and Keep more.
// For every other replica it keeps the newest snapshot in common: without it that
// replica could only be copied in full. How many are needed has a bound that is below the
// number that a copy may hold. So it comes before all rules that add a snapshot: a copy that is full would
// take none, and the last writes of a pod would never be released.
func retain(f *NodeFacts) (Action, bool) {
	c := &f.Copy
	if len(c.Points) <= 1+f.Keep { // a disk has none
		return next()
	}
	var drop []lineage.Point
	for i := range c.Points[:len(c.Points)-1-f.Keep] {
		if !needed(f, c.Points[i]) {
			drop = append(drop, c.Points[i])
		}
	}
	if len(drop) == 0 {
		return next()
	}
	return Action{Verb: Drop, Points: drop, Why: Why{Reason: NotNeeded, Count: len(drop)}}, true
}

func needed(f *NodeFacts, p lineage.Point) bool {
	c, v := &f.Copy, f.Record
	if p == v.RecoveryPoint || p == v.Newest(c.Points) {
		return true
	}
	for _, h := range c.Holds {
		if h.Point == p && h.Until.After(f.Now) {
			return true
		}
	}
	for i := range v.Replicas {
		e := &v.Replicas[i]
		if e.Node == f.Me || e.State == Gone {
			continue
		}
		peer := ownerCopy(f.Peers, e.Node)
		if peer == nil && mayHave(c.Points, e.Point, p) || peer != nil && lineage.Common(c.Points, peer.Points) == p {
			return true
		}
	}
	return false
}

// sinceReport is how many of the snapshots from its recorded one on are kept for a replica that does not answer: that
// one, one that came without a report, and one that was on its way.
const sinceReport = 3

// mayHave tells whether p may be the newest snapshot in common with a replica that does not answer, and that reported
// one. It fell silent soon after that report, so what it has is among the first that follow. To keep all that follow
// would fill the copy while a node is away; if it has another one after all, it is copied in full. It has none before
// its first report.
func mayHave(points []lineage.Point, reported, p lineage.Point) bool {
	i, _ := slices.BinarySearchFunc(points, reported.Seq, func(p lineage.Point, seq uint64) int { return cmp.Compare(p.Seq, seq) })
	return !reported.IsZero() && slices.Contains(points[i:min(i+sinceReport, len(points))], p)
}
