package ownership

import "slices"

// UnstageRules answer "what next?" while no pod wants to write here any more. The
// steps that need no API come first (stop, flush, keep the last writes), then the
// record. A node that restarted uses them too: it gives up the epoch it can no
// longer vouch for, and its writes are not lost.
var UnstageRules = Chain[NodeFacts]{
	{"session", regain},                // a flush needs the reservation
	{"close copy", closeCopy},          // durable before the unmount: this epoch is never written again
	{"unmount", unmount},               //
	{"final snapshot", finalSnapshot},  // unmounting succeeds only with the last writes in a snapshot
	{"record read", recordRead},        // without it the release waits, and so does the answer
	{"repair record", repairRecord},    // release into the right record
	{"not the owner", unstageNotOwner}, // another node owns it, or none: nothing to release
	{"lost copy", reportLostCopy},      // our writes are gone; the controller has to settle that
	{"promise", adoptPromise},          //
	{"release", release},               // the compare-and-swap
}

func closeCopy(f *NodeFacts) (Action, bool) {
	e := f.Copy.Opened
	if f.Record != nil && f.Record.ownedBy(f.Me) && !f.Mounted {
		e = f.Record.Epoch
	}
	if f.Copy.GaveUp(e) || f.Record != nil && f.traits().Data && !f.Copy.Exists {
		return next()
	}
	return Action{Verb: Close, Promise: Promise{Epoch: e}, Why: Why{Reason: ClosingEpoch, Epoch: e}}, true
}

func unmount(f *NodeFacts) (Action, bool) {
	if !f.Mounted {
		return next()
	}
	return Action{Verb: Unmount, Why: Why{Reason: NotWanted}}, true
}

// finalSnapshot names the snapshot after the epoch in which the data was
// written, which is not the record's epoch if that has moved on meanwhile.
func finalSnapshot(f *NodeFacts) (Action, bool) {
	if !f.Copy.Dirty {
		return next()
	}
	return snapshot(f, KeepingLastWrites)
}

func snapshot(f *NodeFacts, reason Reason) (Action, bool) {
	p := f.Copy.Tip()
	p.Epoch, p.Seq = f.Copy.Opened, p.Seq+1
	return Action{Verb: Snapshot, To: p, Why: Why{Reason: reason, Point: p}}, true
}

func unstageNotOwner(f *NodeFacts) (Action, bool) {
	if f.Record != nil && f.traits().Owned && f.Record.ownedBy(f.Me) {
		return next()
	}
	return Action{Verb: Done, Why: Why{Reason: NotOwner}}, true
}

// reportLostCopy records that this node was writing and that the copy with the
// writes is not there. Releasing would present an older copy as if nothing were
// missing.
func reportLostCopy(f *NodeFacts) (Action, bool) {
	v := f.Record
	if v.Primary.Phase != Active && !forgotten(f) || holdsEpoch(v, &f.Copy) || v.Deleting {
		return next()
	}
	if e, _ := v.Replica(f.Me); e.Unstaged == v.Epoch {
		return wait(Why{Reason: CopyLost, Node: f.Me, Epoch: v.Epoch})
	}
	return record(v.with(func(n *Volume) {
		e := n.entry(f.Me)
		e.Unstaged = v.Epoch
		if f.traits().Data && !f.Copy.Exists && Lost.MayFollow(e.State) {
			e.State = Lost
		}
	}), Why{Reason: CopyLost, Node: f.Me, Epoch: v.Epoch})
}

// forgotten tells whether an epoch that the record calls Preparing may have been written by a copy
// that this node no longer has: the copy was removed since, and a backup brought the record back. A
// snapshot of the epoch, here or at a peer, proves it.
func forgotten(f *NodeFacts) bool {
	if !f.traits().Data || f.Copy.Opened == f.Record.Epoch {
		return false
	}
	if !f.Copy.Exists || f.Copy.Tip().Epoch == f.Record.Epoch {
		return true
	}
	return slices.ContainsFunc(f.Peers, func(p Peer) bool { return p.Copy.Tip().Epoch == f.Record.Epoch })
}

// release gives the volume back. If the copy was opened in this epoch, the final
// snapshot is the new recovery point; if not, nothing was written and the old one
// stays. The copy decides this and not the phase: a restored backup may say
// Preparing about an epoch that was written long ago.
func release(f *NodeFacts) (Action, bool) {
	v, c := f.Record, &f.Copy
	return record(v.with(func(n *Volume) {
		e := n.entry(f.Me)
		e.Unstaged = v.Epoch
		if holdsEpoch(v, c) {
			n.Clean = c.Flushed == v.Epoch && !v.Sharing.ManyWriters // others may write
			n.RecoveryPoint, e.Point = c.Tip(), c.Tip()              // none of a disk
		}
		n.Primary.Phase = Released
		n.FenceRequest = FenceRequest{}
	}), Why{Reason: Releasing, Epoch: v.Epoch, Point: c.Tip()})
}
