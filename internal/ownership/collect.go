package ownership

import "time"

// QuarantineFor is how long a copy that looks orphaned is kept untouched.
const QuarantineFor = 24 * time.Hour

// collectAttachment detaches a disk that the record does not know here, or that has no record. An attachment holds
// nothing: a record that comes back has it made anew.
func collectAttachment(f *NodeFacts) (Action, bool) {
	if f.Disk.Link == Detached || f.Mounted {
		return Action{Verb: Nothing, Why: Why{Reason: Settled}}, true
	}
	return detach(f)
}

// detach ends an attachment. Where several nodes write, the record then forgets the node as a writer, so the node gives
// its last epoch up before: no answer of its own may bring it back.
func detach(f *NodeFacts) (Action, bool) {
	c := &f.Copy
	if f.Record != nil && f.Record.Sharing.ManyWriters && !c.GaveUp(c.Opened) {
		return Action{Verb: Close, Promise: Promise{Epoch: c.Opened}, Why: Why{Reason: ClosingEpoch, Epoch: c.Opened}}, true
	}
	return Action{Verb: Detach, Why: Why{Reason: NoLongerAttached, Node: f.Me}}, true
}

// collect deals with a copy that the record does not know. That is no decision to
// destroy it: a backup from before the replica was made looks the same. The copy is
// quarantined until a deadline. After that it is destroyed only if enough others
// hold the same data. If there is no record at all, it stays until a person
// decides.
func collect(f *NodeFacts) (Action, bool) {
	c := &f.Copy
	disk := !c.Exists // that there is no record does not say of what kind the volume was
	if f.Record != nil {
		if _, ok := f.Record.Replica(f.Me); ok {
			return next()
		}
		disk = !f.traits().Data
	}
	switch {
	case disk:
		return collectAttachment(f)
	case !c.Exists || f.Mounted:
		return Action{Verb: Nothing, Why: Why{Reason: Settled}}, true
	case !c.Quarantined && !c.Condemned:
		return Action{Verb: Quarantine, Until: f.Now.Add(QuarantineFor), Why: Why{Reason: LooksOrphaned}}, true
	case f.Record == nil:
		return wait(Why{Reason: LooksOrphaned})
	case c.Quarantined && c.DestroyAt.After(f.Now):
		return wait(Why{Reason: LooksOrphaned})
	}
	if f.Record.Deleting {
		return discard(f, Why{Reason: VolumeDeleting})
	}
	n, ok := enough(f.Record, f.Me, f.Record.Newest(c.Points), f.Peers)
	if !ok || c.Dirty || f.Record.Newest(c.Points) != c.Tip() {
		return wait(Why{Reason: TooFewOthers, Count: n})
	}
	return discard(f, Why{Reason: Unneeded, Node: f.Me, Count: n})
}
