package ledger

import "slices"

// Reserve sets room aside for the demands of the request's pod on a node, all of
// them or nothing. It replaces the holds that the same pod has there for the same
// owners, so repeating it changes nothing. The request may be stale: everything is
// checked again. Demands of Volumes are refused: a Volume is reserved by writing
// its placement.
func (l *Ledger) Reserve(node string, r *Request) ([]Choice, Verdict) {
	fresh, _ := l.Request(r.options, r.demands...) // Place repeats its verdict
	for i := range fresh.items {
		if o := fresh.items[i].Owner; o.Kind == ByVolume {
			return nil, Verdict{Invalid, o}
		}
	}
	choices, verdict := l.nodes[node].Place(fresh, make([]Choice, 0, len(r.items)))
	if !verdict.Fits() {
		return nil, verdict
	}
	for k := range fresh.items {
		it := &fresh.items[k]
		if has := it.on(node); has != nil && has.fixed && has.owner.Kind == ByVolume {
			continue // the Volume is the reservation
		}
		l.hold(it, place{node, choices[k].Pool}, r.options.Pod)
	}
	return choices, Verdict{}
}

// hold records that a pod holds the chosen place for an item.
func (l *Ledger) hold(it *item, at place, uid string) {
	a := l.account(it.Owner)
	h := a.hold(at.node)
	if h == nil {
		a.holds = append(a.holds, hold{})
		h = &a.holds[len(a.holds)-1]
	}
	if !slices.ContainsFunc(h.holders, func(x holder) bool { return x.pod != uid }) {
		h.place, h.class, h.bytes = at, it.id, it.Bytes
	}
	if !slices.ContainsFunc(h.holders, func(x holder) bool { return x.pod == uid }) {
		h.holders = append(h.holders, holder{pod: uid})
	}
	p := l.pod(uid)
	if !slices.Contains(p.holds, a) {
		p.holds = append(p.holds, a)
	}
	l.settle(a)
}

// Unreserve gives back the pod's holds on the node. It may be called without a
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
