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
	if f.Listed || f.Owner.Kind == ledger.ByVolume || m.promised(f.Owner) != f.Node || m.hold(f.Owner, f.Node) != nil {
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
				if h := m.hold(item.Owner, node); h != nil && item.Owner.Kind == ledger.ByPod && m.promised(item.Owner) == node {
					h.Pool = p.Name
				}
			}
		}
	}
}

// asked is the class and the size that an owner's own object asks for.
func (m *Model) asked(o ledger.Owner) (class string, bytes int64) {
	if o.Kind == ledger.ByClaim {
		c := m.claims[o.ID]
		return c.Class, c.Requested
	}
	for _, v := range m.pods[o.ID].Inline {
		if v.Name == o.Inline {
			return v.Class, v.Bytes
		}
	}
	return "", 0
}

// wish is the size that the claims of a volume ask for beyond its own; 0 is none.
func (m *Model) wish(v ledger.VolumeObject) int64 {
	var wish int64
	for _, uid := range m.claimsOf(v.Name) {
		if c, exists := m.claims[uid]; exists {
			wish = max(wish, c.Requested)
		}
	}
	if wish <= v.Capacity {
		return 0
	}
	return wish
}

// grow takes over granted wishes, and returns the facts that grew.
func (m *Model) grow(actual []Fact) []Fact {
	wishes := false
	for name, v := range m.volumes {
		wish := m.wish(v)
		m.growth[name] = min(m.growth[name], wish)
		wishes = wishes || wish > m.growth[name]
	}
	if !wishes {
		return nil
	}
	before := m.volumeFacts()
	var grown []Fact
	for _, f := range actual {
		v, present := m.volumes[f.Owner.ID]
		if f.Owner.Kind != ledger.ByVolume || !present || m.wish(v) == 0 || f.Bytes != m.wish(v) {
			continue
		}
		if m.growth[v.Name] < m.wish(v) {
			m.adopted["growths"]++
		}
		m.growth[v.Name] = m.wish(v)
	}
	for _, f := range m.volumeFacts() {
		at := slices.IndexFunc(before, func(g Fact) bool { return g.Owner == f.Owner && g.Node == f.Node && g.Pool == f.Pool })
		if at >= 0 && f.Charge > before[at].Charge {
			grown = append(grown, f)
		}
	}
	return grown
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
