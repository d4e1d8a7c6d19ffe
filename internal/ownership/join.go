package ownership

import "slices"

// Where several nodes write, the disk is reserved for all registered sessions, and a node writes because its
// session is registered. Three things follow.
//
// A node registers once in an epoch, and only while nothing on it has the disk open. It may have been shut out since
// it decided to, and no command can ask the disk for that. So a session that the target does not know any more ends
// the epoch, also where the old session's key is still there: its pods must let go of the disk first.
//
// A node is shut out when its key is no more registered. A node that has not mounted yet may register after that
// was seen. It reads the record once more before it mounts, and then finds the request to shut it out, which
// was there before anybody looked: it gives the epoch up.
//
// A registration stays when its epoch is over: the last one must not go, or the disk would be free for all. The
// next writer removes those that belong to no open epoch of the record, and so the keys of an earlier volume on the
// same disk. It knows all keys that are newer than its own epoch, or gives that up.

// join has this session registered and the disk reserved for all that are, and removes what may write no more.
func join(f *NodeFacts) (Action, bool) {
	d, mine := &f.Disk, Key{Node: f.Me, Epoch: f.Record.Epoch}
	why := Why{Reason: TakingReservation, Node: f.Me, Epoch: mine.Epoch}
	if r := f.Record.FenceRequest; r.Epoch == mine.Epoch {
		return Action{Verb: GiveUp, Why: Why{Reason: ShutOut, Node: r.Executor, Epoch: r.Epoch}}, true
	}
	if missing, ok := f.unrecorded(); ok {
		return wait(missing)
	}
	open := f.Record.open()
	for _, k := range append(slices.Clone(d.Keys), d.Holder) {
		if _, known := readKey(f, k); !known && k.Number() >= mine.Epoch.Number { // a backup: only a newer epoch helps
			return Action{Verb: GiveUp, Why: Why{Reason: HolderUnknown, Count: int(k.Number())}}, true
		}
	}
	switch {
	case d.Registered == mine.Raw():
	case f.Copy.Opened == mine.Epoch: // it was registered, and is not any more
		return Action{Verb: GiveUp, Why: Why{Reason: RegistrationGone, Node: f.Me, Epoch: mine.Epoch}}, true
	default:
		return Action{Verb: Open, Promise: f.Copy.Promise, Key: mine, Why: why}, true
	}
	if d.Holder == 0 {
		return Action{Verb: Reserve, Key: mine, Why: why}, true
	}
	for _, k := range d.Keys { // of a disk that a wipe has left, the holder's is the last: what is registered may write then
		if !slices.Contains(open, k) && (d.Registrants || k != d.Holder) { // mine is open
			return Action{Verb: Reserve, Expect: k, Key: mine, Why: why}, true
		}
	}
	if !d.Registrants {
		return Action{Verb: Reserve, Expect: d.Holder, Key: mine, Why: why}, true
	}
	return next()
}

// protect has a writer that is registered reserve the disk again if no node holds the reservation: such a disk takes the
// writes of nodes that were shut out, too. The writer itself gains nothing by it. It also takes away the registration
// of a writer that was fenced by a proof about its machine: no node was asked to, and the others go on writing.
func protect(f *NodeFacts) (Action, bool) {
	d, mine := &f.Disk, Key{Node: f.Me, Epoch: f.Copy.Opened}
	if d.Link != Attached || f.Record == nil || !f.Record.Sharing.ManyWriters || d.Registered != mine.Raw() || !f.Mounted {
		return next()
	}
	if d.Holder == 0 {
		return Action{Verb: Reserve, Key: mine, Why: Why{Reason: TakingReservation, Node: f.Me, Epoch: mine.Epoch}}, true
	}
	for _, w := range f.Record.AllWriters() {
		theirs := Key{Node: w.Primary.Node, Epoch: w.Epoch}
		if w.Primary.Phase == Fenced && d.Registrants && slices.Contains(d.Keys, theirs.Raw()) {
			return Action{Verb: Reserve, Expect: theirs.Raw(), Key: mine, Why: Why{Reason: ShuttingOut, Node: theirs.Node, Epoch: theirs.Epoch}}, true
		}
	}
	return next()
}

// expel shuts out each writer for which the record asks this node, one after the other. It does so under
// the key that its session has, or else under one of its own for this.
func expel(f *NodeFacts) (Action, bool) {
	for _, victim := range f.Record.Writing() {
		if a, ok := expelOne(f, f.Record.On(victim)); ok {
			return a, true
		}
	}
	return next()
}

func expelOne(f *NodeFacts, v *Volume) (Action, bool) {
	r, d := v.FenceRequest, &f.Disk
	e, _ := v.Replica(f.Me)
	if r.Executor != f.Me || r.Epoch != v.Epoch || v.Primary.Node == f.Me || d.Link != Attached || e.Fenced == r.Epoch {
		return next()
	}
	theirs, why := Key{Node: v.Primary.Node, Epoch: r.Epoch}, Why{Reason: ShuttingOut, Node: v.Primary.Node, Epoch: r.Epoch}
	if v.Primary.Phase == Active && (d.Holder == 0 || !d.Registrants) {
		why.Reason = ReservationForgotten
		return wait(why)
	}
	if !slices.Contains(d.Keys, theirs.Raw()) {
		if v.awaits(FenceRequest{Executor: f.Me, Epoch: e.Fenced}) {
			return next() // an entry has room for one word, and no controller has read the last
		}
		return record(v.with(func(n *Volume) { n.entry(f.Me).Fenced = r.Epoch }), why)
	}
	key := Key{Node: f.Me, Epoch: f.Record.Epoch}
	if d.Registered != key.Raw() || !f.Record.ownedBy(f.Me) {
		if key = (Key{Node: f.Me, Epoch: r.Epoch, Fence: true}); d.Registered != key.Raw() {
			return Action{Verb: Register, Key: key, Why: why}, true
		}
	}
	return Action{Verb: Reserve, Expect: theirs.Raw(), Key: key, Why: why}, true
}

// unrecorded finds a writer that answers, and of whose epoch the record does not know: the record comes from a
// backup. That node records its epoch again, and join would shut it out before.
func (f *NodeFacts) unrecorded() (Why, bool) {
	for i := range f.Peers {
		p := &f.Peers[i]
		if f.Record.lacks(p.Node, &p.Copy) {
			return Why{Reason: RecordBehind, Node: p.Node, Epoch: p.Copy.Opened}, true
		}
	}
	return Why{}, false
}
