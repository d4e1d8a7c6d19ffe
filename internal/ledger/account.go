package ledger

import "slices"

// account records the room held for a claim, or for an inline volume of a pod.
//
//	          Reserve                    Volume observed              (the Volume's own
//	(nothing) ───────► hold ────────────────────────────► superseded   facts count now)
//	     ▲   Unreserve  │  ▲
//	     └──────────────┘  │ no holder left, but the claim still names the node:
//	                       └─ kept, because a provisioner may be at work there
//
// A hold and the Volume that follows it are never charged on one node together, and
// at every moment one of them is.
type account struct {
	owner *Owner
	// class and bytes of the claim or inline volume, once observed. A tenant writes
	// the class of an inline volume: it is a name, and has no number before an
	// administrator has made a PoolClass of that name.
	class                int
	className, namespace string
	bytes                int64
	// promised is the node that the cluster's objects promise it to: a claim's
	// selected node, or the node of the inline volume's pod.
	promised string
	// observed is whether the claim, or the pod, exists.
	observed bool
	// bound claims get no new hold: their volume is somewhere already.
	bound bool
	// started is whether an inline volume exists on its node, according to its pod.
	started bool
	// waits is the node that the account waits for, if any.
	waits string

	holds  []hold
	links  []*volume
	posted []place
}

// hold is room set aside on one node.
type hold struct {
	place
	class   int
	bytes   int64
	holders []holder
	// standbyOf are the nodes that the room belongs to as that of a standby: each is, or was,
	// the own node of a holder. Requests share the elements, which never change.
	standbyOf []string
	// yields is whether it yields while it is nothing but a standby.
	yields bool
}

// holder is a pod in whose name a hold was made, if it runs on the node own. The holds of all
// replicas of its volumes have the same.
type holder struct {
	pod, own string
	// bound is whether the pod was seen bound to its own node; nothing will unreserve it any
	// more.
	bound bool
}

// standby is whether the hold is nothing but a standby's.
func (h *hold) standby(promised string) bool {
	return promised != h.node && len(h.standbyOf) > 0 && !slices.ContainsFunc(h.holders, func(x holder) bool { return x.own == h.node })
}

// tidy forgets the nodes that the room is no standby's of any more: no holder is meant to run
// there, and nothing is promised to them.
func (h *hold) tidy(promised string) {
	past := func(own string) bool {
		return own != promised && !slices.ContainsFunc(h.holders, func(x holder) bool { return x.own == own })
	}
	if slices.ContainsFunc(h.standbyOf, past) {
		h.standbyOf = slices.DeleteFunc(slices.Clone(h.standbyOf), past)
	}
}

// belongs is whether the hold is part of what was set aside for a node.
func (h *hold) belongs(own string) bool { return h.node == own || slices.Contains(h.standbyOf, own) }

func (a *account) inline() bool { return a.owner.Kind == ByPod }

// hold on a node, or nil.
func (a *account) hold(node string) *hold {
	for i := range a.holds {
		if a.holds[i].node == node {
			return &a.holds[i]
		}
	}
	return nil
}

// heldBy is whether the pod is a holder.
func (a *account) heldBy(uid string) bool {
	return slices.ContainsFunc(a.holds, func(h hold) bool {
		return slices.ContainsFunc(h.holders, func(x holder) bool { return x.pod == uid })
	})
}

// durable is whether something that outlives the scheduler says where the data
// is. An inline volume has nothing but its pod.
func (a *account) durable() bool {
	return slices.ContainsFunc(a.links, func(v *volume) bool { return v.present })
}

// superseded is whether a linked volume is charged on the node already for data
// that can be used there.
func (a *account) superseded(node string) bool {
	return slices.ContainsFunc(a.links, func(v *volume) bool {
		return slices.ContainsFunc(v.posted, func(p place) bool { return p.node == node && !v.over(p) })
	})
}

// idle is whether the account can be forgotten.
func (a *account) idle() bool { return !a.observed && len(a.holds) == 0 && len(a.links) == 0 }

// charge posts the holds that count.
func (a *account) charge(s *shelf) {
	wanted := make([]posting, 0, len(a.holds))
	for i := range a.holds {
		h := &a.holds[i]
		if !a.superseded(h.node) {
			unmade := !a.there(s, h.node)
			wanted = append(wanted, posting{h.place, fact{owner: a.owner, bytes: h.bytes, class: int32(h.class), carving: unmade, unmade: unmade, yields: h.yields && h.standby(a.promised)}})
		}
	}
	a.posted = s.post(a.posted, a.owner, wanted)
}

// assign chooses a place for an account that is promised to a node and has no hold
// there. It chooses as the account's own scheduler would have: after a restart
// there is no record of that choice. It returns the node that the account has to
// wait for, or "".
func (a *account) assign(s *shelf) (waitFor string) {
	if a.promised == "" || a.bound || a.durable() || a.superseded(a.promised) {
		return ""
	}
	node := s.nodes[a.promised]
	if node == nil {
		return a.promised
	}
	if a.inline() {
		return a.assignInline(s, node)
	}
	if a.hold(a.promised) != nil {
		return ""
	}
	if s.synced {
		if pool, found := a.choose(s, node); found {
			a.put(pool)
			return ""
		}
	}
	return a.promised
}

// put gives the account a hold on the node that it is promised to.
func (a *account) put(pool string) {
	a.holds = append(a.holds, hold{place: place{a.promised, pool}, class: a.class, bytes: a.bytes})
}

// choose picks a pool of the node for an account that has none.
func (a *account) choose(s *shelf, node *Node) (pool string, found bool) {
	r := &Request{items: []item{{Demand: Demand{Owner: *a.owner, Bytes: a.bytes}, id: a.class, class: s.classes.class(a.class)}}}
	if chosen, verdict := node.Place(r, nil); verdict.Fits() {
		return chosen[0].Pool, true
	}
	return "", false
}

// there is whether an account is for an inline volume that has been made.
func (a *account) there(s *shelf, node string) bool {
	if !a.inline() || a.started {
		return a.started
	}
	_, listed := s.nodes[node].where(a.owner) // the account has a hold on the node, so there is one
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
func (a *account) assignInline(s *shelf, node *Node) (waitFor string) {
	id, numbered := s.classes.ids[a.className]
	if !numbered {
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
		if b := node.book(held.pool); b.reported && !a.makes(s, b) {
			a.drop(a.promised)
			held = nil
		}
	}
	if held != nil || !s.synced {
		return a.promised
	}
	if pool, found := a.choose(s, node); found && s.classes.class(id).admits(a.owner, a.namespace) {
		a.put(pool)
	} else if pool, found := a.making(s, node); found {
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
func (a *account) making(s *shelf, node *Node) (pool string, found bool) {
	var most int64
	for _, b := range node.books {
		if b.offer(a.class) == nil || !a.started && !a.makes(s, b) {
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
func (a *account) makes(s *shelf, b *book) bool {
	if b.closed(a.class) != Fits || !s.classes.class(a.class).admits(a.owner, a.namespace) {
		return false
	}
	need := min(b.Kind.Charge(&b.Pool, s.classes.class(a.class), a.bytes), unbounded)
	return need <= b.limit(a.class)-b.made(a.owner)
}
