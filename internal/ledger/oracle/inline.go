package oracle

import (
	"fmt"
	"slices"

	"berth.dev/berth/internal/ledger"
)

// makes is whether the node could be making an inline volume in the pool, beside
// the volumes that exist.
func (m *Model) makes(o ledger.Owner, node string, p *ledger.Pool, v ledger.InlineVolume) bool {
	if _, reported := m.pool(node, p.Name); !reported || p.Health != ledger.Healthy || !slices.Contains(p.Classes, v.Class) {
		return false
	}
	c, known := m.classes[v.Class]
	if !known || !slices.Contains(c.InlineNamespaces, m.pods[o.ID].Namespace) {
		return false
	}
	top, open := limit(p, c)
	if !open {
		return false
	}
	var made []Fact
	for _, f := range m.Facts() {
		if f.Owner != o && !f.unmade {
			made = append(made, f)
		}
	}
	return charge(p, c, v.Bytes) <= top-m.add(made, node, p.Name).used
}

// couldBe is whether an inline volume is where it is charged, or its node could be making it there.
func (m *Model) couldBe(f Fact, class string, bytes int64) bool {
	p, _ := m.pool(f.Node, f.Pool)
	return m.there(f.Owner, f.Node) || m.makes(f.Owner, f.Node, p, ledger.InlineVolume{Class: class, Bytes: bytes})
}

// giveUp drops the holds of inline volumes that the ledger has dropped, after
// checking that their nodes cannot make them.
func (m *Model) giveUp(actual []Fact) error {
	var problem error
	m.holds = slices.DeleteFunc(m.holds, func(h Hold) bool {
		if h.Owner.Kind != ledger.ByPod || len(h.Holders) > 0 || m.promised(h.Owner) != h.Node ||
			slices.ContainsFunc(actual, func(f Fact) bool { return !f.Listed && f.Owner == h.Owner && f.Node == h.Node && f.Pool == h.Pool }) {
			return false
		}
		p, reported := m.pool(h.Node, h.Pool)
		v := ledger.InlineVolume{Name: h.Owner.Inline, Class: h.Class, Bytes: h.Bytes}
		if !reported || m.there(h.Owner, h.Node) || m.makes(h.Owner, h.Node, p, v) {
			problem = fmt.Errorf("the ledger holds nothing for %v in %s of node %s, which is there or could be", h.Owner, h.Pool, h.Node)
		}
		m.adopted["inline volumes given up"]++
		return true
	})
	return problem
}
