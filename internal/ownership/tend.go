package ownership

import (
	"time"

	"berth.dev/berth/internal/lineage"
)

// TendRules answer "what next?" for a replica that no pod is asking for, and for
// the upkeep of a mounted one. An agent follows them by itself: at its start, when
// the record changes, when a peer has something new.
var TendRules = Chain[NodeFacts]{
	{"session", regain},                  // the disk decides, not the record
	{"record read", recordRead},          // an error says nothing about the record
	{"repair record", repairRecord},      // believe the nodes before an old backup
	{"step down", stepDown},              // superseded: stop writing first of all
	{"protect", protect},                 // many writers: what is registered may write, and all if there is no reservation
	{"collect", collect},                 // no record, or no entry in it
	{"activate again", activateAgain},    // a backup forgot that the epoch is written
	{"give up", giveUp},                  // an epoch that is not used here any more
	{"delete", deleteCopy},               //
	{"promise", adoptPromise},            // refuse what the epoch left out from now on
	{"fence request", executeFence},      // shut out a writer at the device
	{"put branch aside", putBranchAside}, // before the copy that holds it may go
	{"leave", leave},                     // removal, second phase
	{"reprieve", reprieve},               // no longer meant to go
	{"lost copy", admitLoss},             // a copy was recorded and is not there
	{"attach", attach},                   // until the device is there
	{"grow", grow},                       // before a larger peer's data
	{"found", found},                     // the first snapshot, which all others fetch
	{"retain", retain},                   // before another snapshot comes
	{"snapshot", periodicSnapshot},       //
	{"catch up", followUp},               //
	{"report", report},                   //
	{"admit fence", admitFence},          // after its state: pods may come back then
}

// stepDown stops a writer whose epoch is not the record's any more, or which the
// device refuses. A fence that was called off too late leaves such a writer mounted
// and useless, and only a new epoch helps. It also ends a mount of an epoch that the node gave up
// before a pod came back, and that of a filesystem that has shut itself down.
func stepDown(f *NodeFacts) (Action, bool) {
	v := f.Record
	if !f.Mounted || v == nil || !f.traits().Owned {
		return next()
	}
	why := Why{Reason: Superseded, Node: v.Primary.Node, Epoch: v.Epoch}
	switch owns := v.ownedBy(f.Me) && v.Epoch == f.Copy.Opened; {
	case owns && f.Copy.GaveUp(v.Epoch):
		why.Reason = ClosingEpoch
	case owns && f.ShutDown:
		why = Why{Reason: FilesystemShutDown, Node: f.Me, Epoch: v.Epoch}
	case owns && !shutOut(f):
		return next()
	case owns && v.Sharing.ManyWriters:
		why.Reason = RegistrationGone
	case owns:
		held, _ := readKey(f, f.Disk.Holder)
		why = Why{Reason: ShutOut, Node: held.Node, Epoch: held.Epoch}
	}
	if !f.Copy.GaveUp(f.Copy.Opened) {
		return Action{Verb: Close, Promise: Promise{Epoch: f.Copy.Opened}, Why: why}, true
	}
	return Action{Verb: Unmount, Why: why}, true
}

// activateAgain records Active for a mounted volume. No kubelet asks for what it has, so Stage cannot.
func activateAgain(f *NodeFacts) (Action, bool) {
	if !f.Mounted {
		return next()
	}
	return activate(f)
}

// shutOut tells whether the disk refuses the epoch's owner, and not just a session of it that
// ended. A disk that is away for a moment has refused nothing.
func shutOut(f *NodeFacts) bool {
	d, mine := &f.Disk, Key{Node: f.Me, Epoch: f.Record.Epoch}
	switch {
	case d.Link != Attached:
		return false
	case f.Record.Sharing.ManyWriters:
		return d.Registered != mine.Raw()
	case d.Holder == mine.Raw():
		return false
	}
	return d.Holder != 0 || f.Record.Sharing.Persistent
}

// giveUp ends an epoch that no pod uses here, or that the node cannot use: after a backup its entry may be on its way out
// of the record, and it leaves once no epoch is open. Then a pod that waits gets a new one.
func giveUp(f *NodeFacts) (Action, bool) {
	e, _ := f.Record.Replica(f.Me)
	switch {
	case f.Mounted || !f.Record.ownedBy(f.Me):
		return next()
	case e.State == Gone:
		return Action{Verb: GiveUp, Why: Why{Reason: CopyGone, Node: f.Me}}, true
	case f.Wanted:
		return next()
	}
	return Action{Verb: GiveUp, Why: Why{Reason: NotWanted}}, true
}

// executeFence takes the reservation away from the writer of the requested
// epoch, or takes it first if that writer has not got it yet: from then on the
// device refuses it either way. An active writer has had it. A target that does not know of that has forgotten it,
// whatever the class says, or brings it back when the writer logs in again: there a fence would prove nothing.
func executeFence(f *NodeFacts) (Action, bool) {
	v := f.Record
	if v.Sharing.ManyWriters {
		return expel(f)
	}
	r := v.FenceRequest
	if r.Executor != f.Me || r.Epoch != v.Epoch || !v.Primary.Phase.Open() || v.Primary.Node == f.Me {
		return next()
	}
	key := Key{Node: f.Me, Epoch: r.Epoch, Fence: true}
	switch {
	case f.Disk.Link != Attached || f.Disk.Holder.Number() > r.Epoch.Number:
		return next()
	case f.Disk.Holder == 0 && v.Primary.Phase == Active:
		return wait(Why{Reason: ReservationForgotten, Node: v.Primary.Node, Epoch: r.Epoch})
	}
	if !f.Disk.holds(key) {
		return seize(f, key, Why{Reason: ShuttingOut, Node: v.Primary.Node, Epoch: r.Epoch})
	}
	if e, _ := v.Replica(f.Me); e.Fenced == r.Epoch {
		return next()
	}
	return record(v.with(func(n *Volume) { n.entry(f.Me).Fenced = r.Epoch }), Why{Reason: ShuttingOut, Node: v.Primary.Node, Epoch: r.Epoch})
}

// admitLoss corrects an entry whose copy is not there, so that the entry does not
// count and the copy is filled again.
func admitLoss(f *NodeFacts) (Action, bool) {
	e, _ := f.Record.Replica(f.Me)
	if !f.traits().Data || f.Copy.Exists || e.State == Reserved || e.State == Syncing || e.State == Failed {
		return next()
	}
	state := Lost
	if e.State == Lost {
		state = Syncing
	}
	return record(f.Record.with(func(n *Volume) {
		e := n.entry(f.Me)
		e.State, e.Point = state, lineage.Point{}
	}), Why{Reason: CopyLost, Node: f.Me})
}

func periodicSnapshot(f *NodeFacts) (Action, bool) {
	if !f.Mounted || !f.Copy.Dirty || !f.SnapshotDue || !f.traits().Owned {
		return next()
	}
	return snapshot(f, IntervalPassed)
}

// report brings the node's own entry up to date; no other node reports it.
func report(f *NodeFacts) (Action, bool) {
	e, _ := f.Record.Replica(f.Me)
	state, point := observe(f), f.Record.Newest(f.Copy.Points)
	if state == Lost && (e.State == Reserved || e.State == Syncing) {
		return next()
	}
	if !state.MayFollow(e.State) {
		state = Syncing
	}
	if e.State == state && (e.Point == point || !f.traits().Data) {
		return next()
	}
	return record(f.Record.with(func(n *Volume) {
		e := n.entry(f.Me)
		e.State, e.Point = state, point
		if state == Ready {
			e.Tries, e.RetryAt = 0, time.Time{}
		}
	}), Why{Reason: Reporting, Node: f.Me, Point: point})
}

// admitFence says that this node, whose epoch was fenced, will never write into it again, as a release does. Until
// then no pod is sent here: what keeps a fenced writer out may be a disk that refuses it, and its mount be there.
func admitFence(f *NodeFacts) (Action, bool) {
	v := f.Record
	e, _ := v.Replica(f.Me)
	if v.Primary.Phase != Fenced || v.Primary.Node != f.Me || f.Mounted || e.Unstaged == v.Epoch || f.traits().Data && !f.Copy.Exists {
		return next()
	}
	why := Why{Reason: ClosingEpoch, Epoch: v.Epoch}
	if !f.Copy.GaveUp(v.Epoch) {
		return Action{Verb: Close, Promise: Promise{Epoch: v.Epoch}, Why: why}, true
	}
	return record(v.with(func(n *Volume) { n.entry(f.Me).Unstaged = v.Epoch }), why)
}
