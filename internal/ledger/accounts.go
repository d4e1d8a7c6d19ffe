package ledger

import "slices"

// accounts is the room that is set aside for claims and inline volumes, and the pods in whose name it is. What
// it knows of Volumes are the links of an account: those that replace its holds.
type accounts struct {
	shelf   *shelf
	byOwner map[Owner]*account
	pods    pods
}

func newAccounts(s *shelf) *accounts {
	return &accounts{shelf: s, byOwner: map[Owner]*account{}, pods: pods{}}
}

// of returns the owner's account, made if need be.
func (as *accounts) of(o Owner) *account {
	a := as.byOwner[o]
	if a == nil {
		owner := o
		a = &account{owner: &owner}
		as.byOwner[o] = a
	}
	return a
}

// settle brings an account's holds and charges in line with all that is known.
func (as *accounts) settle(a *account) {
	as.prune(a)
	node := a.assign(as.shelf)
	a.charge(as.shelf)
	if a.idle() {
		delete(as.byOwner, *a.owner)
	}
	as.shelf.waiting.await(*a.owner, &a.waits, node)
}

// prune drops the holders that are done and the holds that nothing keeps.
func (as *accounts) prune(a *account) {
	durable := a.durable()
	for i := range a.holds {
		h := &a.holds[i]
		if !durable && !(a.inline() && a.promised == h.node) {
			continue
		}
		before := slices.Clone(h.holders)
		h.holders = slices.DeleteFunc(h.holders, func(x holder) bool { return x.bound })
		for _, x := range before {
			as.pods.keep(a, x.pod)
		}
	}
	for i := range a.holds {
		a.holds[i].tidy(a.promised)
	}
	a.holds = slices.DeleteFunc(a.holds, func(h hold) bool {
		return len(h.holders) == 0 && (durable || a.promised == "" || !h.belongs(a.promised))
	})
}

// link ties a volume to the accounts of these claims, and to no others.
func (as *accounts) link(v *volume, claims []string) {
	if slices.Equal(claims, v.linked) {
		return
	}
	for _, uid := range v.linked {
		a := as.of(Claim(uid))
		a.links = slices.DeleteFunc(a.links, func(w *volume) bool { return w == v })
	}
	for _, uid := range claims {
		a := as.of(Claim(uid))
		a.links = append(a.links, v)
	}
	v.linked = claims
}

// wish is the size that the claims of a volume ask for by now.
func (as *accounts) wish(v *volume) int64 {
	wish := int64(0)
	for _, uid := range v.linked {
		wish = max(wish, as.of(Claim(uid)).bytes)
	}
	return wish
}

// hold records that a pod, which is to run on the node own, holds the chosen place for an item.
func (as *accounts) hold(it *item, at place, uid, own string) {
	a := as.of(it.Owner)
	h := a.hold(at.node)
	if h == nil {
		a.holds = append(a.holds, hold{})
		h = &a.holds[len(a.holds)-1]
	}
	if !slices.ContainsFunc(h.holders, func(x holder) bool { return x.pod != uid }) {
		h.place, h.class, h.bytes, h.yields = at, it.id, it.Bytes, it.Yields
	}
	if !slices.ContainsFunc(h.holders, func(x holder) bool { return x.pod == uid && x.own == own }) {
		h.holders = append(h.holders, holder{pod: uid, own: own})
	}
	if !h.belongs(own) {
		h.standbyOf = append(h.standbyOf, own)
	}
	p := as.pods.of(uid)
	if !slices.Contains(p.holds, a) {
		p.holds = append(p.holds, a)
	}
	as.settle(a)
}

// moveStandbys gives back the standbys of an owner that the pod held for its own node, and that
// are elsewhere by now.
func (as *accounts) moveStandbys(o Owner, choices []Choice, uid, own string) {
	a, moved := as.byOwner[o], false
	if a == nil {
		return
	}
	for i := range a.holds {
		h := &a.holds[i]
		at := slices.IndexFunc(h.holders, func(x holder) bool { return x.pod == uid && x.own == own })
		if at >= 0 && !slices.ContainsFunc(choices, func(c Choice) bool { return c.Owner == o && c.Node == h.node }) {
			h.holders, moved = slices.Delete(h.holders, at, at+1), true
		}
	}
	if moved {
		as.settle(a)
		as.pods.keep(a, uid)
	}
}

// Unreserve gives back the pod's holds for the node, those of standbys included. It may be called without a
// Reserve before it, and any number of times. A hold that the claim's selected node
// promises stays, as does one that another pod has.
func (as *accounts) Unreserve(uid, node string) {
	p := as.pods[uid]
	if p == nil {
		return
	}
	for _, a := range slices.Clone(p.holds) {
		as.vacate(a, uid, node)
	}
}

// vacate takes the pod from the holders of an account, as far as it was to run on one node or
// ("") on any.
func (as *accounts) vacate(a *account, uid, node string) {
	for i := range a.holds {
		h := &a.holds[i]
		h.holders = slices.DeleteFunc(h.holders, func(x holder) bool { return x.pod == uid && (node == "" || x.own == node) })
	}
	as.settle(a)
	as.pods.keep(a, uid)
}

// Held returns the pool in which room is held for a claim or an inline volume on
// the node. CreateVolume has to put the volume there.
func (as *accounts) Held(o Owner, node string) (pool string, held bool) {
	if a := as.byOwner[o]; a != nil {
		if h := a.hold(node); h != nil {
			return h.pool, true
		}
	}
	return "", false
}

// KnowsPod is whether the pod has inline volumes here or holds room. Later changes
// of any other pod need not be observed.
func (as *accounts) KnowsPod(uid string) bool { return as.pods[uid] != nil }

// ObservePod takes in a pod, new or changed. Pods that have no inline volumes and
// were never reserved for need not be observed. From the moment it is bound to
// the moment it ends, whatever its phase in between, its inline volumes are
// charged.
func (as *accounts) ObservePod(o PodObject) {
	if o.Ended {
		as.ObservePodGone(o.UID)
		return
	}
	if o.Node == "" {
		return
	}
	p := as.pods.of(o.UID)
	for _, v := range o.Inline {
		a := as.of(Inline(o.UID, v.Name))
		a.observed, a.className, a.namespace, a.bytes = true, v.Class, o.Namespace, max(v.Bytes, 0)
		a.promised, a.started = o.Node, o.Started
		if !slices.Contains(p.inline, v.Name) {
			p.inline = append(p.inline, v.Name)
		}
	}
	for _, a := range slices.Clone(p.holds) {
		as.bind(a, o.UID, o.Node)
	}
	for _, name := range p.inline {
		as.settle(as.of(Inline(o.UID, name)))
	}
	as.pods.release(o.UID)
}

// bind notes that the holder was bound to a node: its holds for others become free,
// and its holds for that one stay until the volume is seen.
func (as *accounts) bind(a *account, uid, node string) {
	for i := range a.holds {
		h := &a.holds[i]
		h.holders = slices.DeleteFunc(h.holders, func(x holder) bool { return x.pod == uid && x.own != node })
		for k := range h.holders {
			if h.holders[k].pod == uid {
				h.holders[k].bound = true
			}
		}
	}
	as.settle(a)
	as.pods.keep(a, uid)
}

// ObservePodGone takes in that a pod is gone, or has ended. It gives back the room
// of its inline volumes and its holds, except for claims that still name the node:
// a provisioner may be at work there.
func (as *accounts) ObservePodGone(uid string) {
	p := as.pods[uid]
	if p == nil {
		return
	}
	delete(as.pods, uid)
	for _, name := range p.inline {
		a := as.of(Inline(uid, name))
		a.observed, a.promised = false, ""
		as.vacate(a, uid, "")
	}
	for _, a := range p.holds {
		as.vacate(a, uid, "")
	}
}

// pod is a pod that has inline volumes or holds room.
type pod struct {
	// inline are the names of its inline volumes that have an account.
	inline []string
	// holds are the accounts in which the pod is a holder.
	holds []*account
}

// pods are all of them, by UID.
type pods map[string]*pod

// of returns the record of a pod, made if need be.
func (ps pods) of(uid string) *pod {
	p := ps[uid]
	if p == nil {
		p = &pod{}
		ps[uid] = p
	}
	return p
}

// keep strikes the account from the pod's list unless the pod still holds there.
func (ps pods) keep(a *account, uid string) {
	p := ps[uid]
	if p == nil || a.heldBy(uid) {
		return
	}
	p.holds = slices.DeleteFunc(p.holds, func(b *account) bool { return a == b })
	ps.release(uid)
}

// release forgets a pod that has neither inline volumes nor holds.
func (ps pods) release(uid string) {
	if p := ps[uid]; p != nil && len(p.holds) == 0 && len(p.inline) == 0 {
		delete(ps, uid)
	}
}
