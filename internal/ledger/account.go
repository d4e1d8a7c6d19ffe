package ledger

import (
	"cmp"
	"maps"
	"slices"
)

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

// account returns the owner's account, made if need be.
func (l *Ledger) account(o Owner) *account {
	a := l.accounts[o]
	if a == nil {
		owner := o
		a = &account{owner: &owner}
		l.accounts[o] = a
	}
	return a
}

// settle brings an account's holds and charges in line with all that is known.
func (l *Ledger) settle(a *account) {
	l.prune(a)
	node := l.assign(a)
	l.chargeHolds(a)
	if a.idle() {
		delete(l.accounts, *a.owner)
	}
	l.await(*a.owner, &a.waits, node)
}

// chargeHolds charges the holds that count.
func (l *Ledger) chargeHolds(a *account) {
	wanted := make([]posting, 0, len(a.holds))
	for i := range a.holds {
		h := &a.holds[i]
		if !a.superseded(h.node) {
			unmade := !l.there(a, h.node)
			wanted = append(wanted, posting{h.place, fact{owner: a.owner, bytes: h.bytes, class: int32(h.class), carving: unmade, unmade: unmade, yields: h.yields && h.standby(a.promised)}})
		}
	}
	a.posted = l.post(a.posted, a.owner, wanted)
}

// prune drops the holders that are done and the holds that nothing keeps.
func (l *Ledger) prune(a *account) {
	durable := a.durable()
	for i := range a.holds {
		h := &a.holds[i]
		if !durable && !(a.inline() && a.promised == h.node) {
			continue
		}
		before := slices.Clone(h.holders)
		h.holders = slices.DeleteFunc(h.holders, func(x holder) bool { return x.bound })
		for _, x := range before {
			l.keep(a, x.pod)
		}
	}
	for i := range a.holds {
		a.holds[i].tidy(a.promised)
	}
	a.holds = slices.DeleteFunc(a.holds, func(h hold) bool {
		return len(h.holders) == 0 && (durable || a.promised == "" || !h.belongs(a.promised))
	})
}

// assign chooses a place for an account that is promised to a node and has no hold
// there. It chooses as the account's own scheduler would have: after a restart
// there is no record of that choice. It returns the node that the account has to
// wait for, or "".
func (l *Ledger) assign(a *account) (waitFor string) {
	if a.promised == "" || a.bound || a.durable() || a.superseded(a.promised) {
		return ""
	}
	node := l.nodes[a.promised]
	if node == nil {
		return a.promised
	}
	if a.inline() {
		return l.assignInline(a, node)
	}
	if a.hold(a.promised) != nil {
		return ""
	}
	if l.synced {
		if pool, found := l.choose(a, node); found {
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
func (l *Ledger) choose(a *account, node *Node) (pool string, found bool) {
	r := &Request{items: []item{{Demand: Demand{Owner: *a.owner, Bytes: a.bytes}, id: a.class, class: l.class(a.class)}}}
	if chosen, verdict := node.Place(r, nil); verdict.Fits() {
		return chosen[0].Pool, true
	}
	return "", false
}

// await notes which node an owner waits for, in place of the one that it waited
// for before; "" is none.
func (l *Ledger) await(o Owner, waits *string, node string) {
	if *waits == node {
		return
	}
	before := l.waiting[*waits]
	if delete(before, o); len(before) == 0 {
		delete(l.waiting, *waits)
	}
	if *waits = node; node == "" {
		return
	}
	if l.waiting[node] == nil {
		l.waiting[node] = map[Owner]bool{}
	}
	l.waiting[node][o] = true
}

// revisit settles the owners that wait for one of the nodes again. Inline volumes
// come first: they may exist already, while a claim can still go elsewhere.
func (l *Ledger) revisit(nodes ...string) {
	var owners []Owner
	for _, node := range nodes {
		owners = slices.AppendSeq(owners, maps.Keys(l.waiting[node]))
	}
	slices.SortFunc(owners, func(a, b Owner) int { return cmp.Or(cmp.Compare(b.Kind, a.Kind), a.Compare(b)) })
	for _, o := range owners {
		l.review(o)
	}
}

// review settles a volume, or an account and the volumes it is linked to.
func (l *Ledger) review(o Owner) {
	if o.Kind == ByVolume {
		if v := l.volumes[o.ID]; v != nil {
			l.settleVolume(v)
		}
		return
	}
	a := l.accounts[o]
	if a == nil {
		return
	}
	for _, v := range slices.Clone(a.links) {
		l.settleVolume(v)
	}
	l.settle(a)
}
