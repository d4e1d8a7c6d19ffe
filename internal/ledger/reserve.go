package ledger

import "slices"

// Reserve sets room aside for the demands of the request's pod on a node, and for their
// standbys on others, all of them or nothing. It replaces the holds that the same pod has
// for that node for the same owners, so repeating it changes nothing. The choices on the
// node itself come first. The request may be stale: everything is
// checked again. Demands of Volumes are refused: a Volume is reserved by writing
// its placement.
func (l *Ledger) Reserve(node string, r *Request) ([]Choice, Verdict) {
	fresh, _ := l.Request(r.options, r.demands...) // Place repeats its verdict
	for i := range fresh.items {
		if o := fresh.items[i].Owner; o.Kind == ByVolume {
			return nil, Verdict{Invalid, o}
		}
	}
	choices, verdict := l.place(node, fresh)
	if !verdict.Fits() {
		return nil, verdict
	}
	for _, c := range choices {
		it := fresh.item(c.Owner)
		if has := it.on(c.Node); has != nil && has.fixed && has.owner.Kind == ByVolume {
			continue // the Volume is the reservation
		}
		l.hold(it, place{c.Node, c.Pool}, r.options.Pod, node)
	}
	for _, c := range choices[:len(fresh.items)] {
		l.moveStandbys(c.Owner, choices, r.options.Pod, node)
	}
	return choices, Verdict{}
}

// place finds the places of all replicas.
func (l *Ledger) place(node string, r *Request) ([]Choice, Verdict) {
	if len(r.tiers) > 0 {
		return newPlan(l.nodes, r).Place(l.nodes[node])
	}
	return l.nodes[node].Place(r, make([]Choice, 0, len(r.items)))
}

// item of an owner.
func (r *Request) item(o Owner) *item {
	return &r.items[slices.IndexFunc(r.items, func(it item) bool { return it.Owner == o })]
}

// moveStandbys gives back the standbys of an owner that the pod held for its own node, and that
// are elsewhere by now.
func (l *Ledger) moveStandbys(o Owner, choices []Choice, uid, own string) {
	a, moved := l.accounts[o], false
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
		l.settle(a)
		l.keep(a, uid)
	}
}

// hold records that a pod, which is to run on the node own, holds the chosen place for an item.
func (l *Ledger) hold(it *item, at place, uid, own string) {
	a := l.account(it.Owner)
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
	p := l.pod(uid)
	if !slices.Contains(p.holds, a) {
		p.holds = append(p.holds, a)
	}
	l.settle(a)
}

// Unreserve gives back the pod's holds for the node, those of standbys included. It may be called without a
// Reserve before it, and any number of times. A hold that the claim's selected node
// promises stays, as does one that another pod has.
func (l *Ledger) Unreserve(uid, node string) {
	p := l.pods[uid]
	if p == nil {
		return
	}
	for _, a := range slices.Clone(p.holds) {
		l.vacate(a, uid, node)
		l.keep(a, uid)
	}
}

// Held returns the pool in which room is held for a claim or an inline volume on
// the node. CreateVolume has to put the volume there.
func (l *Ledger) Held(o Owner, node string) (pool string, held bool) {
	if a := l.accounts[o]; a != nil {
		if h := a.hold(node); h != nil {
			return h.pool, true
		}
	}
	return "", false
}
