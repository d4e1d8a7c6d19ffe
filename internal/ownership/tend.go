package ownership

import "berth.dev/berth/internal/lineage"

// TendRules answer "what next?" for a replica that no pod is asking for, and for
// the upkeep of a mounted one. An agent follows them by itself: at its start, when
// the record changes, when a peer has something new.
var TendRules = Chain[NodeFacts]{
	{"record read", recordRead},          // an error says nothing about the record
	{"repair record", repairRecord},      // believe the nodes before an old backup
	{"step down", stepDown},              // superseded: stop writing first of all
	{"collect", collect},                 // no record, or no entry in it
	{"give up", giveUp},                  // an epoch that is not used here any more
	{"delete", deleteCopy},               //
	{"fence request", executeFence},      // shut out a writer at the device
	{"promise", followPromise},           // refuse older epochs from now on
	{"put branch aside", putBranchAside}, // before the copy that holds it may go
	{"leave", leave},                     // removal, second phase
	{"reprieve", reprieve},               // no longer meant to go
	{"lost copy", admitLoss},             // a copy was recorded and is not there
	{"snapshot", periodicSnapshot},       //
	{"release key", releaseStaleKey},     //
	{"catch up", followUp},               //
	{"report", report},                   //
	{"retain", retain},                   //
}

// stepDown stops a writer whose epoch is not the record's any more, or which the
// device refuses. A fence that was called off too late leaves such a writer mounted
// and useless, and only a new epoch helps.
func stepDown(f *NodeFacts) (Action, bool) {
	v := f.Record
	if !f.Mounted || v == nil || !f.traits().Owned {
		return next()
	}
	why := Why{Reason: Superseded, Node: v.Primary.Node, Epoch: v.Epoch}
	if v.ownedBy(f.Me) && v.Epoch == f.Copy.Opened {
		if !f.traits().Reserves || f.Disk.Holder == (Key{Node: f.Me, Epoch: v.Epoch}) {
			return next()
		}
		why = Why{Reason: ShutOut, Node: f.Disk.Holder.Node, Epoch: f.Disk.Holder.Epoch}
	}
	if !f.Copy.GaveUp(f.Copy.Opened) {
		return Action{Verb: Close, Promise: Promise{Epoch: f.Copy.Opened}, Why: why}, true
	}
	return Action{Verb: Unmount, Why: why}, true
}

func giveUp(f *NodeFacts) (Action, bool) {
	if f.Wanted || f.Mounted || !f.traits().Owned || !f.Record.ownedBy(f.Me) {
		return next()
	}
	return Action{Verb: GiveUp, Why: Why{Reason: NotWanted}}, true
}

// executeFence takes the reservation away from the writer of the requested
// epoch, or takes it first if that writer has not got it yet: from then on the
// device refuses it either way.
func executeFence(f *NodeFacts) (Action, bool) {
	v := f.Record
	r := v.FenceRequest
	if r.Executor != f.Me || r.Epoch != v.Epoch || !v.Primary.Phase.Open() || v.Primary.Node == f.Me {
		return next()
	}
	key := Key{Node: f.Me, Epoch: r.Epoch, Fence: true}
	if f.Disk.Holder != key {
		if f.Disk.Holder.Epoch.Number > r.Epoch.Number {
			return next()
		}
		return Action{Verb: Reserve, Expect: f.Disk.Holder, Key: key, Why: Why{Reason: ShuttingOut, Node: v.Primary.Node, Epoch: r.Epoch}}, true
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

func releaseStaleKey(f *NodeFacts) (Action, bool) {
	h := f.Disk.Holder
	if h.Node != f.Me || h.Fence || f.Mounted || h.Epoch == f.Record.Epoch {
		return next()
	}
	return Action{Verb: Unreserve, Key: h, Why: Why{Reason: Superseded, Node: f.Record.Primary.Node, Epoch: f.Record.Epoch}}, true
}

func followPromise(f *NodeFacts) (Action, bool) {
	if !f.Copy.Exists {
		return next()
	}
	return adoptPromise(f)
}

// report brings the node's own entry up to date; no other node reports it.
func report(f *NodeFacts) (Action, bool) {
	e, _ := f.Record.Replica(f.Me)
	state, point := observe(f), f.Record.newest(f.Copy.Points)
	if state == Lost && (e.State == Reserved || e.State == Syncing) {
		return next()
	}
	if e.State == state && (e.Point == point || !f.traits().Data) {
		return next()
	}
	if !state.MayFollow(e.State) {
		state = Syncing
	}
	if e.State == state && e.Point == point {
		return next()
	}
	return record(f.Record.with(func(n *Volume) {
		e := n.entry(f.Me)
		e.State, e.Point = state, point
	}), Why{Reason: Reporting, Node: f.Me, Point: point})
}
