package ledger

import "slices"

// Demand asks for the room of one volume.
type Demand struct {
	Owner Owner
	Class string
	Bytes int64
	// Namespace of the pod that an inline volume is for.
	Namespace string
	// Pool that it must come from; empty means any that serves the class.
	Pool string
	// Beside are the places of the source that the volume is to be a copy of: it
	// must be made in one of them. Nil means that it begins blank and may be made
	// anywhere. An empty list that is not nil is a source that is nowhere: the
	// volume then fits nowhere.
	Beside []Place
	// Feature that the node's agent must have; empty means that any agent will do.
	Feature string
	// Factor is the number of replicas, the one on the pod's node included; 0 means 1. The
	// others are standbys, each on a node of its own, to which Pool and Beside do not apply.
	Factor int
	// Yields says that a standby takes only a slot that is spare, and gives it up to a
	// volume that needs one.
	Yields bool
}

// maxFactor is more than the API allows.
const maxFactor = 64

// Place is a pool of a node.
type Place struct{ Node, Pool string }

// Request is a set of demands that must be met together on one node, or on that node and
// those of standbys. It is worked out once and then asked of many nodes. It is not changed by asking.
type Request struct {
	options RequestOptions
	demands []Demand
	verdict Verdict
	items   []item // the largest first
	// tiers and kin are for standbys, and empty where every volume has one replica.
	tiers []tier
	kin   kin
}

// item is a demand with the ledger's knowledge of its owner.
type item struct {
	Demand
	id        int
	class     *Class
	standings []standing
	// shared claims are held for another pod in flight: they may only go where
	// they are held.
	shared bool
	// yields is whether this replica is a standby that yields.
	yields bool
}

// standing is a volume or a hold that the owner has at a place already.
type standing struct {
	place
	// fixed: it is there and stays there, so it needs no room and no choice.
	// Otherwise it is the owner's own hold, which makes way for the new one.
	fixed bool
	owner Owner
	// standbyOf are the nodes whose pods it is held for as a standby; a hold's.
	standbyOf []string
}

// RequestOptions are the caller's choices.
type RequestOptions struct {
	// Pod that the demands are for.
	Pod string
	// Strategy by which one of several places is chosen; nil is Spread.
	Strategy Strategy
	// Siblings are the claims and Volumes of the pod that have their places already: the
	// standbys go to the nodes of these first, so that the pod can move.
	Siblings []Owner
	// Among are the nodes that may take a new standby: those on which the pod could run. Nil
	// means all.
	Among []string
}

// strategy returns the strategy of the options, or the default.
func (o *RequestOptions) strategy() Strategy {
	if o.Strategy == nil {
		return Spread
	}
	return o.Strategy
}

// refuse notes why the demands fit nowhere. The first reason stays.
func (r *Request) refuse(reason Reason, owner Owner) {
	if r.verdict.Fits() {
		r.verdict = Verdict{reason, owner}
	}
}

// item of an owner.
func (r *Request) item(o Owner) *item {
	return &r.items[slices.IndexFunc(r.items, func(it item) bool { return it.Owner == o })]
}

// standOn notes where a volume is. A new Volume finds the remains of an earlier one
// of its name, but need not use them. Remains that are over only take room.
func (it *item) standOn(v *volume) {
	for _, at := range v.posted {
		if v.over(at) {
			continue
		}
		it.standings = append(it.standings, standing{at, v.present, *v.owner, nil})
	}
}

// standHeld notes where room is held for the owner.
func (it *item) standHeld(a *account, pod string) {
	for i := range a.holds {
		h := &a.holds[i]
		shared := slices.ContainsFunc(h.holders, func(x holder) bool { return x.pod != pod })
		it.shared = it.shared || shared
		it.standings = append(it.standings, standing{h.place, shared, *a.owner, h.standbyOf})
	}
}

// on returns the owner's standing on the node, or nil. A fixed one comes first, and then that of a
// volume, which supersedes a hold.
func (it *item) on(node string) *standing {
	var found *standing
	for i := range it.standings {
		s := &it.standings[i]
		if s.node == node && (found == nil || s.fixed && !found.fixed) {
			found = s
		}
	}
	return found
}

// owed is how much more the item takes of the pool in which it stands: nothing, unless it has
// the room of a standby that yields and is not to yield any more.
func (it *item) owed(has *standing, b *book) int64 {
	if f := b.fact(&has.owner); f != nil && f.yields && !it.yields {
		return f.charge
	}
	return 0
}

// elsewhere is whether the item has a source, but not on this node.
func (it *item) elsewhere(node string) bool {
	return it.Beside != nil && !slices.ContainsFunc(it.Beside, func(p Place) bool { return p.Node == node })
}

// barred is why the item cannot use the pool, however much is free there.
func (it *item) barred(n *Node, b *book) Reason {
	switch {
	case it.Pool != "" && it.Pool != b.Name:
		return OtherPool
	case it.elsewhere(n.name):
		return SourceElsewhere
	case it.Beside != nil && !slices.Contains(it.Beside, Place{n.name, b.Name}):
		return OtherPool
	}
	if why := b.closed(it.id); why != Fits {
		return why
	}
	if it.Feature != "" && !slices.Contains(n.features, it.Feature) {
		return AgentTooOld
	}
	return Fits
}

// twin is whether a pool that is of no use for the item is of none for another, either. A Feature is the
// node's and says nothing of a pool.
func (it *item) twin(other *item) bool {
	return it.id == other.id && it.Bytes == other.Bytes && it.Pool == other.Pool && it.yields == other.yields && slices.Equal(it.Beside, other.Beside) && len(other.standings) == 0
}
