package ownership

import "berth.dev/berth/internal/lineage"

// retain drops snapshots that are not needed. It keeps the newest, the recovery
// point, those held for others, the newest the volume still holds, and Keep more.
// For every other replica it keeps the newest snapshot in common: without it that
// replica could only be copied in full. Only a lower bound is known of a replica
// that does not answer, so retain keeps everything from its recorded point on.
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
		if peer == nil {
			if p.Seq >= e.Point.Seq {
				return true
			}
			continue
		}
		if lineage.Common(c.Points, peer.Points) == p {
			return true
		}
	}
	return false
}
