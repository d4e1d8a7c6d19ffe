package ledger

import (
	"cmp"
	"maps"
	"slices"
)

// Request works demands out. The verdict names a reason that keeps them from
// fitting on any node at all, and every node will repeat it.
func (l *Ledger) Request(options RequestOptions, demands ...Demand) (*Request, Verdict) {
	r := &Request{options: options, demands: slices.Clone(demands), items: make([]item, 0, len(demands))}
	if !l.synced {
		r.verdict = Verdict{Reason: NotSynced}
	}
	for _, d := range demands {
		id, class := l.classes.find(d.Class)
		if class == nil {
			r.refuse(UnknownClass, d.Owner)
			continue
		}
		if d.Bytes <= 0 || d.Factor < 0 || d.Factor > maxFactor || d.Factor > 1 && d.Owner.Kind == ByPod {
			r.refuse(Invalid, d.Owner)
			continue
		}
		if !class.admits(&d.Owner, d.Namespace) {
			r.refuse(NotAdmitted, d.Owner)
			continue
		}
		if slices.ContainsFunc(r.items, func(it item) bool { return it.Owner == d.Owner }) {
			continue
		}
		it := item{Demand: d, id: id, class: class}
		l.stand(&it, options.Pod)
		r.items = append(r.items, it)
	}
	slices.SortStableFunc(r.items, func(a, b item) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.id, b.id), a.Owner.Compare(b.Owner))
	})
	if r.layTiers(); len(r.tiers) > 0 {
		r.kin = l.kinOf(options.Siblings)
	}
	return r, r.verdict
}

// stand notes the volumes and holds that the owner has already.
func (l *Ledger) stand(it *item, pod string) {
	for _, v := range l.volumesOf(it.Owner) {
		it.standOn(v)
	}
	if a := l.accounts.byOwner[it.Owner]; a != nil {
		it.standHeld(a, pod)
	}
}

// kinOf finds the nodes of the owners' volumes.
func (l *Ledger) kinOf(owners []Owner) kin {
	k := kin{count: map[string]int{}}
	for _, o := range owners {
		nodes := map[string]bool{}
		for _, v := range l.volumesOf(o) {
			for _, at := range live(v.replicas) {
				nodes[at.node] = true
			}
		}
		for node := range nodes {
			k.count[node]++
		}
	}
	k.ranks = slices.SortedFunc(maps.Values(k.count), func(a, b int) int { return b - a })
	return k
}

// volumesOf are the volumes of an owner: a Volume's own, or those that an account is linked to.
func (l *Ledger) volumesOf(o Owner) []*volume {
	if o.Kind == ByVolume {
		if v := l.volumes.byName[o.ID]; v != nil {
			return []*volume{v}
		}
		return nil
	}
	if a := l.accounts.byOwner[o]; a != nil {
		return a.links
	}
	return nil
}

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
		l.accounts.hold(it, place{c.Node, c.Pool}, r.options.Pod, node)
	}
	for _, c := range choices[:len(fresh.items)] {
		l.accounts.moveStandbys(c.Owner, choices, r.options.Pod, node)
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
