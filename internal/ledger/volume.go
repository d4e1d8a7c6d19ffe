package ledger

import (
	"cmp"
	"slices"
)

// volume is the record of a Volume, or of the remains of one, with its claims.
type volume struct {
	owner *Owner
	// present is whether the Volume object exists. While it does, it alone is
	// believed.
	present  bool
	claim    string
	class    int
	capacity int64
	replicas []Replica
	// growth is the size that the claim asks for by now and that was found to
	// fit; 0 for none.
	growth int64

	// pvs are the names of the PersistentVolumes that stand for it, in order.
	pvs []string
	// remains are the charges of replicas that are gone, or whose Volume was gone
	// before them. They stand until a report of the node takes that into account.
	remains []remain
	// linked are the claims whose accounts know of this volume.
	linked []string
	posted []place
	// waits is the node whose next report may let the volume grow, if any.
	waits string
}

type remain struct {
	posting
	// revision at which the Volume, or the replica, went.
	revision int64
	// over is whether the node has said that nothing of it can be used again. A new
	// Volume of the name finds the remains that are not over.
	over bool
}

// target is the size a replica is to have.
func (v *volume) target(r *Replica) int64 {
	if r.State == Refused {
		return max(r.Actual, 0)
	}
	return max(v.capacity, r.Actual, v.growth, 0)
}

// replica turns a replica into its fact; false when it takes nothing.
func (v *volume) replica(r *Replica) (posting, bool) {
	bytes := v.target(r)
	if r.State == Gone || r.State == Refused && bytes == 0 {
		return posting{}, false
	}
	f := fact{owner: v.owner, bytes: bytes, class: int32(v.class), yields: r.Yields}
	f.carving = r.State == Pending || r.Actual > 0 && bytes > r.Actual
	f.unmade = r.State == Pending && r.Actual == 0
	if r.Taken > 0 && bytes <= r.Actual {
		f.charge, f.stated = min(r.Taken, unbounded), true
	}
	return posting{place{r.Node, r.Pool}, f}, true
}

// wanted lists the facts of a volume: those of the Volume's replicas, and its
// remains. Of two facts on one place the first counts.
func (l *Ledger) wanted(v *volume) []posting {
	var facts []posting
	add := func(p posting) {
		if !slices.ContainsFunc(facts, func(f posting) bool { return f.place == p.place }) {
			facts = append(facts, p)
		}
	}
	for i := range v.replicas {
		if p, ok := v.replica(&v.replicas[i]); ok {
			add(p)
		}
	}
	for i := range v.remains {
		add(v.remains[i].posting)
	}
	return facts
}

// volume returns the record of a Volume, made if need be.
func (l *Ledger) volume(name string) *volume {
	v := l.volumes[name]
	if v == nil {
		owner := Volume(name)
		v = &volume{owner: &owner}
		l.volumes[name] = v
	}
	return v
}

// settleVolume brings a volume's charges, and the accounts of its claims, in line
// with all that is known. The volume comes first, because its charges decide how
// much room is left for the accounts.
func (l *Ledger) settleVolume(v *volume) {
	before := v.linked
	l.link(v)
	l.await(*v.owner, &v.waits, l.grow(v))
	for _, uid := range before {
		if !slices.Contains(v.linked, uid) {
			l.settle(l.account(Claim(uid)))
		}
	}
	for _, uid := range v.linked {
		l.settle(l.account(Claim(uid)))
	}
	if !v.present && len(v.pvs) == 0 && len(v.remains) == 0 {
		delete(l.volumes, v.owner.ID)
	}
}

// link ties the volume to the accounts of its claims: the one it was made for,
// and those its PersistentVolumes are bound to.
func (l *Ledger) link(v *volume) {
	var claims []string
	add := func(uid string) {
		if uid != "" && !slices.Contains(claims, uid) {
			claims = append(claims, uid)
		}
	}
	if v.present || len(v.remains) > 0 {
		add(v.claim)
	}
	for _, name := range v.pvs {
		add(l.pvs[name].Claim)
	}
	if slices.Equal(claims, v.linked) {
		return
	}
	for _, uid := range v.linked {
		a := l.account(Claim(uid))
		a.links = slices.DeleteFunc(a.links, func(w *volume) bool { return w == v })
	}
	for _, uid := range claims {
		a := l.account(Claim(uid))
		a.links = append(a.links, v)
	}
	v.linked = claims
}

// live are the places of the replicas that a growth would concern.
func live(replicas []Replica) []place {
	var live []place
	for i := range replicas {
		if r := &replicas[i]; r.State != Gone && r.State != Refused {
			live = append(live, place{r.Node, r.Pool})
		}
	}
	slices.SortFunc(live, func(a, b place) int { return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.pool, b.pool)) })
	return live
}

// grow posts the volume's charges. They include the growth that its claim asks for,
// if that fits on every node that has a replica. A wish that does not fit is not
// charged: no claim can close a node by asking for the impossible. It is checked
// again with the next report. A growth is granted for these replicas only, and is
// checked anew for others.
func (l *Ledger) grow(v *volume) (waitFor string) {
	wish := int64(0)
	for _, uid := range v.linked {
		wish = max(wish, l.account(Claim(uid)).bytes)
	}
	if !v.present || wish <= v.capacity {
		wish = 0
	}
	v.growth = min(v.growth, wish)
	v.posted = l.post(v.posted, v.owner, l.wanted(v))
	if wish <= v.growth || len(live(v.replicas)) == 0 {
		return ""
	}
	if !l.synced {
		return live(v.replicas)[0].node
	}
	if node := l.obstacle(v, wish).Node; node != "" {
		return node
	}
	v.growth = wish
	v.posted = l.post(v.posted, v.owner, l.wanted(v))
	return ""
}
