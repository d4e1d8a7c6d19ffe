package ownership

import "time"

// publish makes an attachment for each node that wants the volume, or counts on one again that
// was about to go. It lets no writer in: Stage does. If all shares are taken, one of the volume's own
// standbys makes room, unless the node could not be served even then.
func publish(f *ControllerFacts) (Action, bool) {
	v := f.Record
	if !v.Kind.Traits().Attaches || v.Deleting {
		return next()
	}
	for _, node := range f.Wanted {
		e, has := v.Replica(node)
		if has && e.State.counts() {
			continue
		}
		why := Why{Reason: WantedHere, Node: node}
		switch {
		case has || f.node(node).Slots > 0 && !sharesTaken(v):
			return record(v.with(func(n *Volume) {
				n.ExpireAt = time.Time{}
				e, old := n.entry(node), Syncing
				if !has {
					old = Reserved
				}
				*e = Replica{Node: node, State: old, Unstaged: e.Unstaged, Fenced: e.Fenced}
			}), why)
		case sharesTaken(v) && f.serves(node):
			if a, ok := makeRoom(f, func(*Replica) bool { return true }, why); ok {
				return a, true
			}
		}
	}
	return next()
}

// serves tells whether the node can be attached to as soon as the disk has a free share. The share is freed
// before the slot: other volumes' standbys give way only to a volume that has one. So a slot now would be too
// much to ask.
func (f *ControllerFacts) serves(node string) bool {
	m := f.node(node)
	return m.Slots > 0 || m.MakesRoom
}

// unserved is how many nodes that want the volume are still without an attachment, and can get one. One that
// can get none, because all of its slots are in use or it is no storage node, does not count: a pod can be bound
// to such a node for ever, and the volume would be without a standby for as long.
func (f *ControllerFacts) unserved() (n int) {
	for _, node := range f.Wanted {
		if _, has := f.Record.Replica(node); !has && f.serves(node) {
			n++
		}
	}
	return n
}

// sharesTaken tells whether the disk can be attached to no further node. An attachment keeps its
// share until its entry has left the record.
func sharesTaken(v *Volume) bool {
	return v.Kind.Traits().Attaches && len(v.Replicas) >= v.Sharing.MaxShares
}

// makeRoom begins the removal of the least useful standby of those that may go. One at a time: while
// one is on its way out, its share will do. A node that is away gives none. A reason that names no node is about that
// standby.
func makeRoom(f *ControllerFacts, may func(*Replica) bool, why Why) (Action, bool) {
	v, victim := f.Record, -1
	for i := range v.Replicas {
		e := &v.Replicas[i]
		switch {
		case f.node(e.Node).Away():
		case !e.State.counts():
			return next()
		case v.ownedBy(e.Node) || f.wanted(e.Node) || v.executes(e.Node) || !may(e):
		case victim < 0 || lessUseful(f, e, &v.Replicas[victim]):
			victim = i
		}
	}
	if victim < 0 {
		return next()
	}
	if e := &v.Replicas[victim]; why.Node == "" {
		why.Node, why.Count = e.Node, e.Tries
	}
	return record(v.with(func(n *Volume) { n.Replicas[victim].State = Removing }), why)
}

// giveWay begins the removal of a standby that takes the slot which a primary of another volume needs.
func giveWay(f *ControllerFacts) (Action, bool) {
	v := f.Record
	if !v.Kind.Traits().Attaches || !v.Sharing.Yields {
		return next()
	}
	for i := range v.Replicas {
		e := &v.Replicas[i]
		if e.State.counts() && !v.ownedBy(e.Node) && !f.wanted(e.Node) && f.node(e.Node).GiveWay {
			return record(v.with(func(n *Volume) { n.entry(e.Node).State = Removing }), Why{Reason: GivingWay, Node: e.Node})
		}
	}
	return next()
}

// expire removes the attachments of a volume that has no owner and that no pod has wanted for a
// while. They hold no data. The deadline is in the record, so that no process has to live until then. The node that
// takes the volume for the next pod calls it off with that write. A controller does so only if none has by the time
// that ExpireAfter is left: a pod that goes again so leaves the attachments for no less.
func expire(f *ControllerFacts) (Action, bool) {
	v := f.Record
	if !v.Kind.Traits().Attaches || len(v.Writing()) > 0 || v.Deleting {
		return next()
	}
	switch {
	case len(f.Wanted) > 0 && (v.ExpireAt.IsZero() || v.ExpireAt.Sub(f.Now) >= ExpireAfter):
		return next()
	case len(f.Wanted) > 0:
		return record(v.with(func(n *Volume) { n.ExpireAt = time.Time{} }), Why{Reason: WantedHere, Node: f.Wanted[0]})
	case v.ExpireAt.IsZero():
		return record(v.with(func(n *Volume) { n.ExpireAt = f.expiry() }), Why{Reason: Unused})
	case v.ExpireAt.After(f.Now):
		return next()
	}
	going := v.with(func(n *Volume) {
		for i := range n.Replicas { // entries that are Gone have left the record before
			n.Replicas[i].State = Removing
		}
	})
	for i := range v.Replicas {
		if v.Replicas[i].State.counts() {
			return record(going, Why{Reason: Unused, Node: v.Replicas[i].Node})
		}
	}
	return next()
}

// expiry is the deadline to write into the record of a volume that loses its last user now: at that time a controller
// removes the attachments.
func (f *ControllerFacts) expiry() time.Time { return f.Now.Add(ClaimWithin + ExpireAfter) }

// noRoom says what a pod waits for whose node has no attachment and gets none now.
func noRoom(f *ControllerFacts) (Action, bool) {
	v := f.Record
	if !v.Kind.Traits().Attaches || v.Deleting {
		return next()
	}
	for _, node := range f.Wanted {
		if _, has := v.Replica(node); has {
			continue
		}
		if sharesTaken(v) && f.serves(node) {
			return wait(Why{Reason: NoFreeShare, Node: node, Count: v.Sharing.MaxShares})
		}
		return wait(Why{Reason: NoFreeSlot, Node: node})
	}
	return next()
}

// SlotUse is an attachment that takes a slot of a node on which a primary of another volume waits.
type SlotUse struct {
	Volume string
	// Standby: neither owner nor wanted. Yields: its class allows it to give way.
	Standby, Yields bool
	State           State
	// Others is how many further standbys its volume has.
	Others int
}

// Yielding chooses the attachment of a full node that gives its slot to a waiting primary: one whose
// attach failed first, then one that is not ready, then one of the volume with the most standbys,
// then by name. None is chosen while one is on its way out already.
func Yielding(uses []SlotUse) (string, bool) {
	best := -1
	for i := range uses {
		u := &uses[i]
		if !u.State.counts() {
			return "", false
		}
		if u.Standby && u.Yields && (best < 0 || yieldsBefore(u, &uses[best])) {
			best = i
		}
	}
	if best < 0 {
		return "", false
	}
	return uses[best].Volume, true
}

func yieldsBefore(a, b *SlotUse) bool {
	if x, y := a.State == Failed, b.State == Failed; x != y {
		return x
	}
	if x, y := a.State == Ready, b.State == Ready; x != y {
		return y
	}
	if a.Others != b.Others {
		return a.Others > b.Others
	}
	return a.Volume < b.Volume
}
