package oracle

import (
	"fmt"
	"slices"

	"berth.dev/berth/internal/ledger"
)

// adopt takes over the choices that the rules leave to the ledger, after checking
// that they were legal. The choices are the pool of an owner whose objects name a
// node and no pool, and whether a claim's wish for more is granted.
func (m *Model) adopt(actual []Fact, synced bool) error {
	m.relocate()
	if err := m.giveUp(actual); err != nil {
		return err
	}
	var chosen []Fact
	forced := false
	for _, f := range actual {
		if !m.leaves(f) {
			continue
		}
		class, bytes := m.asked(f.Owner)
		if f.Owner.Kind == ledger.ByPod && !m.couldBe(f, class, bytes) {
			return fmt.Errorf("the ledger charges %v, which the node cannot make", f)
		}
		h := newHold(f.Owner, f.Node)
		h.Pool, h.Class, h.Bytes = f.Pool, class, bytes
		m.holds = append(m.holds, h)
		if f.Owner.Kind == ledger.ByPod {
			m.adopted["inline volumes"]++
			forced = true
			continue
		}
		m.adopted["claims"]++
		chosen = append(chosen, f)
	}
	grown := m.grow(actual)
	if !synced && len(chosen)+len(grown) > 0 {
		return fmt.Errorf("the ledger granted %v before it had seen everything", append(chosen, grown...))
	}
	if forced {
		return nil // charged whether or not there is room
	}
	return m.legal(append(chosen, grown...))
}

// leaves says whether the rules let the ledger choose to charge f: no object and no hold
// settles yet where the owner is.
func (m *Model) leaves(f Fact) bool {
	if f.Listed || f.Owner.Kind == ledger.ByVolume || m.promised(f.Owner) != f.Node || m.holds.on(f.Owner, f.Node) != nil {
		return false
	}
	return f.Owner.Kind != ledger.ByClaim || !m.claims[f.Owner.ID].Bound && !m.durable(f.Owner.ID) && !m.standsOn(f.Owner, f.Node)
}

// relocate moves inline volumes to where their node's inventory lists them.
func (m *Model) relocate() {
	for node, r := range m.reports {
		if !slices.ContainsFunc(r.Pools, func(p ledger.Pool) bool { return len(p.Inventory) > 0 }) {
			continue
		}
		pools := slices.Clone(r.Pools)
		slices.SortFunc(pools, func(a, b ledger.Pool) int { return compareFacts(Fact{Pool: b.Name}, Fact{Pool: a.Name}) })
		for _, p := range pools { // the first by name has the last word
			for _, item := range p.Inventory {
				if h := m.holds.on(item.Owner, node); h != nil && item.Owner.Kind == ledger.ByPod && m.promised(item.Owner) == node {
					h.Pool = p.Name
				}
			}
		}
	}
}

// legal checks that there was room for the ledger's choices.
func (m *Model) legal(chosen []Fact) error {
	if len(chosen) == 0 {
		return nil
	}
	facts := m.Facts()
	for _, f := range chosen {
		p, reported := m.pool(f.Node, f.Pool)
		top, _ := m.limit(p, f.Class)
		s := m.add(facts, f.Node, f.Pool)
		if !reported || !m.open(f.Node, p, f.Class) || s.firm > min(top, s.promised) {
			return fmt.Errorf("the ledger chose %v: open %t, in use %d of %d (promised %d)",
				f, m.open(f.Node, p, f.Class), s.firm, top, s.promised)
		}
	}
	return nil
}
