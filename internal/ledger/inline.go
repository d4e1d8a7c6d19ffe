package ledger

import "slices"

// there is whether an account is for an inline volume that has been made.
func (l *Ledger) there(a *account, node string) bool {
	if !a.inline() || a.started {
		return a.started
	}
	_, listed := l.nodes[node].where(a.owner) // the account has a hold on the node, so there is one
	return listed
}

// assignInline is assign for an inline volume. Its pod is bound whether or not
// there is room, and may ask for something that no node has. So it is charged
//
//   - where the node's inventory lists it;
//   - in any case, once its pod has started;
//   - and before that where the node could be making it at this moment.
//
// A volume that the node cannot make is not charged, because no wish may close a
// node. A volume that the node does not list is checked again with its next report.
func (l *Ledger) assignInline(a *account, node *Node) (waitFor string) {
	id, known := l.classIDs[a.className]
	if !known {
		return a.promised
	}
	a.class = id
	held := a.hold(a.promised)
	pool, listed := node.where(a.owner)
	if listed {
		if held == nil {
			a.put(pool)
		} else {
			held.pool = pool
		}
		return ""
	}
	if held != nil && len(held.holders) == 0 && !a.started {
		// A pool that is absent keeps its charges.
		if b := node.book(held.pool); b.reported && !l.makes(a, b) {
			a.drop(a.promised)
			held = nil
		}
	}
	if held != nil || !l.synced {
		return a.promised
	}
	if pool, found := l.choose(a, node); found && l.class(id).admits(a.owner, a.namespace) {
		a.put(pool)
	} else if pool, found := l.making(a, node); found {
		a.put(pool)
	}
	return a.promised
}

// drop ends the hold on a node.
func (a *account) drop(node string) {
	a.holds = slices.DeleteFunc(a.holds, func(h hold) bool { return h.node == node })
}

// making picks the pool with the most room among those in which the node could be
// making the inline volume.
func (l *Ledger) making(a *account, node *Node) (pool string, found bool) {
	var most int64
	for _, b := range node.books {
		if b.offer(a.class) == nil || !a.started && !l.makes(a, b) {
			continue
		}
		if room := b.room(a.class); !found || room > most {
			pool, most, found = b.Name, room, true
		}
	}
	return pool, found
}

// makes is whether the node could be making the inline volume in the pool at this
// moment. It counts the volumes that exist, and not those that are yet to be made.
func (l *Ledger) makes(a *account, b *book) bool {
	if b.closed(a.class) != Fits || !l.class(a.class).admits(a.owner, a.namespace) {
		return false
	}
	need := min(b.Kind.Charge(&b.Pool, l.class(a.class), a.bytes), unbounded)
	return need <= b.limit(a.class)-b.made(a.owner)
}
