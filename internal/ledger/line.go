package ledger

import "slices"

// line is the search for the standbys of a pod on one node. Standby i, counted from 0, has the replica
// i+2 of the volumes that have so many.
//
// Which nodes may be standby i does not depend on the other standbys: pools of different nodes share
// nothing. So the search is for distinct nodes, one for each standby (a bipartite matching), and an
// augmenting path finds one wherever there is one.
type line struct {
	*Plan
	own string
	// taken is the node of each standby.
	taken []int
	// short is the first standby that gets no node, or -1.
	short int
}

// lineUp finds a node for each standby, or says which one gets none.
func (p *Plan) lineUp(own string) *line {
	l := &line{Plan: p, own: own, short: -1}
	kin := p.request.kin
	if kin.count[own] < kin.rank(1) {
		l.short = 0
		return l
	}
	last := p.request.tiers[len(p.request.tiers)-1].until
	for i := range last - 1 {
		l.taken = append(l.taken, -1)
		if !l.seat(i, 0, new(uint64)) {
			l.taken = l.taken[:i]
			l.short = i
			return l
		}
	}
	return l
}

// verdict is why there is a standby without a node.
func (l *line) verdict() Verdict {
	switch {
	case l.short < 0:
		return Verdict{}
	case l.request.kin.count[l.own] < l.request.kin.rank(1):
		return Verdict{Reason: SiblingsElsewhere}
	default:
		return Verdict{Reason: NoStandby}
	}
}

// tier is the index of the tier that standby i takes.
func (l *line) tier(i int) int {
	return slices.IndexFunc(l.request.tiers, func(t tier) bool { return i+2 <= t.until })
}

// may is whether a node can be standby i.
func (l *line) may(i, at int) bool {
	name := l.names[at]
	return l.stands[l.tier(i)][at].reason == Fits && name != l.own && l.request.kin.count[name] == l.request.kin.rank(i+2)
}

// seat gives standby i a node, and moves standbys from the first on to make one free. seen are the
// standbys that were tried.
func (l *line) seat(i, first int, seen *uint64) bool {
	*seen |= 1 << i
	for at := range l.names {
		if l.may(i, at) && !slices.Contains(l.taken, at) {
			l.taken[i] = at
			return true
		}
	}
	for k := first; k < len(l.taken); k++ {
		if at := l.taken[k]; at >= 0 && *seen&(1<<k) == 0 && l.may(i, at) && l.seat(k, first, seen) {
			l.taken[i] = at
			return true
		}
	}
	return false
}

// improve gives each standby in turn the best of the nodes that leave one for each after it.
func (l *line) improve() {
	for i := range l.taken {
		var refused []int
		for best := l.best(i, refused); !l.swap(i, best); best = l.best(i, refused) {
			refused = append(refused, best)
		}
	}
}

// best is the best node for standby i that none before it has. There is one: its own.
func (l *line) best(i int, refused []int) int {
	best := l.taken[i]
	for at := range l.names {
		if l.may(i, at) && !slices.Contains(refused, at) && !slices.Contains(l.taken[:i], at) && l.better(i, at, best) {
			best = at
		}
	}
	return best
}

// swap gives standby i another node, if those after it can do without.
func (l *line) swap(i, at int) bool {
	before := slices.Clone(l.taken)
	other := slices.Index(l.taken, at)
	l.taken[i] = at
	if other <= i {
		return true
	}
	l.taken[other] = -1
	if l.seat(other, i+1, new(uint64)) {
		return true
	}
	copy(l.taken, before)
	return false
}

// crowd is how many replicas before standby i are in the failure domain of a node.
func (l *line) crowd(i, at int) int {
	domain := l.nodes[l.names[at]].domain
	if domain == "" {
		return 0
	}
	crowd := 0
	if n := l.nodes[l.own]; n != nil && n.domain == domain {
		crowd++
	}
	for _, other := range l.taken[:i] {
		if l.nodes[l.names[other]].domain == domain {
			crowd++
		}
	}
	return crowd
}

// unheld is how many of the volumes of standby i have no room on a node that is held for the pod's
// own node.
func (l *line) unheld(i, at int) int {
	unheld, part := 0, l.request.tiers[l.tier(i)].request
	for k := range part.items {
		if !slices.ContainsFunc(part.items[k].standings, func(s standing) bool {
			return s.node == l.names[at] && slices.Contains(s.standbyOf, l.own)
		}) {
			unheld++
		}
	}
	return unheld
}
