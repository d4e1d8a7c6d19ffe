package ownership

import "berth.dev/berth/internal/lineage"

// putBranchAside deals with data that is not, or no longer, part of the volume: the
// unsent writes of an old primary. It is named after the epoch that wrote it and
// put aside as a branch of its own. Only then is the copy rolled back. Nothing is
// thrown away here; the branch's end is a matter of policy.
func putBranchAside(f *NodeFacts) (Action, bool) {
	v, c := f.Record, &f.Copy
	if !f.traits().Data || f.Mounted || writtenHere(f) {
		return next()
	}
	relation, common := v.Lineage.Relate(c.Points, c.Dirty, preparedEnd(f))
	if relation == lineage.Empty || relation == lineage.InLine {
		return next()
	}
	if c.Dirty {
		return snapshot(f, KeepingLastWrites)
	}
	if c.Preserved != c.Tip() {
		return Action{Verb: Preserve, To: common, Why: Why{Reason: BranchKept, Point: c.Tip()}}, true
	}
	if relation == lineage.Unrelated {
		return next() // a full copy, beside
	}
	return Action{Verb: RollBack, To: common, Why: Why{Reason: RollingBack, Point: common}}, true
}

// writtenHere tells whether the copy holds the writes of the current epoch. The
// phase cannot tell: a restored backup may say Preparing about such an epoch.
func writtenHere(f *NodeFacts) bool {
	return f.Record.ownedBy(f.Me) && holdsEpoch(f.Record, &f.Copy)
}

// holdsEpoch tells whether the copy was opened in the record's epoch and still
// holds it. It may have been rolled back since, to before the epoch began,
// because the record said so until a backup forgot it.
func holdsEpoch(v *Volume, c *Copy) bool {
	if c.Opened != v.Epoch {
		return false
	}
	b, ok := v.Lineage.Branch(v.Epoch)
	return !ok || c.Tip() == b.From || c.Tip().Epoch == v.Epoch
}

// preparedEnd is the last valid point; for the node that prepares to take over
// it is where its epoch begins.
func preparedEnd(f *NodeFacts) lineage.Point {
	if f.Record.Primary.Phase == Preparing && f.Record.Primary.Node == f.Me {
		return f.Record.RecoveryPoint
	}
	return f.Record.end()
}
