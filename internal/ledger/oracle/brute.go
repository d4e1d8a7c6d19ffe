package oracle

import (
	"slices"

	"berth.dev/berth/internal/ledger"
)

// Fits tries every way to place the demands on the node.
func (m *Model) Fits(node, pod string, demands ...ledger.Demand) bool {
	return m.takes(node, pod, false, demands, nil)
}

// takes tries every way to place one replica of each demand on the node, for the pod itself or as
// standbys. pinned, if it is not nil, says which pool each must get.
func (m *Model) takes(node, pod string, standby bool, demands []ledger.Demand, pinned []string) bool {
	r, reported := m.reports[node]
	if len(demands) == 0 {
		return true
	}
	if !reported || !r.Ready {
		return false
	}
	facts := m.Facts()
	b := brute{
		m: m, node: node, pools: r.Pools, demands: demands, standby: standby, pinned: pinned,
		fixed: make([]string, len(demands)), owed: make([]int64, len(demands)), chosen: make([]int, len(demands)),
	}
	for i, d := range demands {
		c, known := m.classes[d.Class]
		if !known || d.Bytes <= 0 || d.Owner.Kind == ledger.ByPod && !slices.Contains(c.InlineNamespaces, d.Namespace) {
			return false
		}
		if !b.stand(i, pod, &facts) {
			return false
		}
	}
	b.sums = make([]sum, len(r.Pools))
	for i := range r.Pools {
		b.sums[i] = m.add(facts, node, r.Pools[i].Name)
	}
	return b.try(0)
}

type brute struct {
	m       *Model
	node    string
	pools   []ledger.Pool
	demands []ledger.Demand
	standby bool
	pinned  []string
	// fixed is the pool in which a demand is met already.
	fixed []string
	// owed is what it takes there beyond what it has for sure: a standby's slot may be lost.
	owed   []int64
	sums   []sum
	chosen []int
}

// stand looks up the facts of a demand's owner on the node. A volume or another
// pod's hold fixes the pool; an own hold and the remains of a volume make way. It
// is false when the claim is held for another pod elsewhere.
func (b *brute) stand(i int, pod string, facts *[]Fact) bool {
	o := b.demands[i].Owner
	var remains []ledger.Owner
	for _, f := range b.m.volumeFacts() {
		switch {
		case f.Node != b.node || f.over || o.Kind != ledger.ByClaim || !slices.Contains(b.m.claimsOf(f.Owner.ID), o.ID):
		case b.m.placed(f.Owner.ID):
			b.fixed[i] = f.Pool
			b.owes(i, f)
			return true
		default:
			remains = append(remains, f.Owner)
		}
	}
	h := b.m.holds.on(o, b.node)
	switch {
	case h != nil && h.sharedBeside(pod):
		b.fixed[i] = h.Pool
		if at := slices.IndexFunc(*facts, h.charges); at >= 0 {
			b.owes(i, (*facts)[at])
		}
		return true
	case h == nil && remains == nil && slices.ContainsFunc(b.m.holds, func(h Hold) bool { return h.Owner == o && h.sharedBeside(pod) }):
		return false
	}
	*facts = slices.DeleteFunc(*facts, func(g Fact) bool {
		return g.Node == b.node && (g.Owner == o || slices.Contains(remains, g.Owner))
	})
	return true
}

// owes notes what a demand takes beyond the fact that it has.
func (b *brute) owes(i int, f Fact) {
	if f.yields && !b.yields(i) {
		b.owed[i] = f.Charge
	}
}

// yields is whether a demand is only for a slot that is spare.
func (b *brute) yields(i int) bool { return b.standby && b.demands[i].Yields }

// try places the demands from the i-th on in every way.
func (b *brute) try(i int) bool {
	if i == len(b.demands) {
		return b.holds()
	}
	for p := range b.pools {
		b.chosen[i] = p
		if b.allowed(i, p) && b.try(i+1) {
			return true
		}
	}
	return b.fixed[i] != "" && !slices.ContainsFunc(b.pools, func(p ledger.Pool) bool { return p.Name == b.fixed[i] }) && b.skip(i)
}

// skip leaves out a demand whose fixed pool was not reported.
func (b *brute) skip(i int) bool {
	b.chosen[i] = -1
	return b.try(i + 1)
}

func (b *brute) allowed(i, p int) bool {
	if b.pinned != nil && b.pinned[i] != b.pools[p].Name {
		return false
	}
	if b.fixed[i] != "" {
		return b.fixed[i] == b.pools[p].Name
	}
	d := b.demands[i]
	if d.Feature != "" && !slices.Contains(b.m.reports[b.node].Features, d.Feature) {
		return false
	}
	if !b.standby && d.Pool != "" && d.Pool != b.pools[p].Name {
		return false
	}
	if !b.standby && d.Beside != nil && !slices.Contains(d.Beside, ledger.Place{Node: b.node, Pool: b.pools[p].Name}) {
		return false
	}
	return b.m.open(b.node, &b.pools[p], d.Class)
}

// holds is whether every pool is within the limits of everything placed in it.
func (b *brute) holds() bool {
	for p := range b.pools {
		use, top, placed, spare := b.sums[p].firm, b.sums[p].promised, false, false
		for i, d := range b.demands {
			if b.chosen[i] != p || b.fixed[i] != "" && b.owed[i] == 0 {
				continue
			}
			placed, spare = true, spare || b.yields(i)
			need := b.owed[i]
			if b.fixed[i] == "" {
				need = charge(&b.pools[p], b.m.classes[d.Class], d.Bytes)
			}
			use = min(use+need, ceiling)
			if own, serves := b.m.limit(&b.pools[p], d.Class); serves {
				top = min(top, own)
			}
		}
		if spare { // then nothing may have to yield at once
			use = min(use+b.sums[p].used-b.sums[p].firm, ceiling)
		}
		if placed && use > top {
			return false
		}
	}
	return true
}
