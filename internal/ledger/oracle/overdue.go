package oracle

import (
	"slices"

	"berth.dev/berth/internal/ledger"
)

// Overdue lists the grants that the ledger should have made and did not: promised
// owners without a place, and wishes without growth, for which there is room. It is
// meant for a ledger whose claims and reports have just been repeated.
func (m *Model) Overdue() []string {
	var overdue []string
	for _, uid := range sortedKeys(m.claims) {
		if m.overdueClaim(uid) {
			overdue = append(overdue, ledger.Claim(uid).String())
		}
	}
	for _, uid := range sortedKeys(m.pods) {
		for _, v := range m.pods[uid].Inline {
			if m.overdueInline(uid, v) {
				overdue = append(overdue, ledger.Inline(uid, v.Name).String())
			}
		}
	}
	for _, name := range sortedKeys(m.volumes) {
		if m.overdueGrowth(name) {
			overdue = append(overdue, "growth of "+name)
		}
	}
	return overdue
}

// overdueClaim is whether a claim has a selected node, and nothing there, and would
// fit.
func (m *Model) overdueClaim(uid string) bool {
	c, o := m.claims[uid], ledger.Claim(uid)
	if c.SelectedNode == "" || c.Bound || m.durable(uid) || m.holds.on(o, c.SelectedNode) != nil || m.standsOn(o, c.SelectedNode) {
		return false
	}
	return m.Fits(c.SelectedNode, "", ledger.Demand{Owner: o, Class: c.Class, Bytes: c.Requested})
}

// overdueInline is whether an inline volume of a bound pod is charged nowhere
// although it is there or could be, or is charged where it cannot be.
func (m *Model) overdueInline(uid string, v ledger.InlineVolume) bool {
	node, o := m.pods[uid].Node, ledger.Inline(uid, v.Name)
	if h := m.holds.on(o, node); h != nil {
		p, reported := m.pool(node, h.Pool)
		return reported && len(h.Holders) == 0 && !m.there(o, node) && !m.makes(o, node, p, v)
	}
	return slices.ContainsFunc(m.reports[node].Pools, func(p ledger.Pool) bool {
		_, serves := m.limit(&p, v.Class)
		return serves && (m.pods[uid].Started || m.makes(o, node, &p, v))
	})
}

// overdueGrowth is whether a wish fits on every replica and was not granted.
func (m *Model) overdueGrowth(name string) bool {
	v := m.volumes[name]
	wish := m.wish(v)
	if wish == 0 || m.growth[name] == wish || len(live(v)) == 0 {
		return false
	}
	facts := m.Facts()
	for _, r := range v.Replicas {
		if r.State == ledger.Gone || r.State == ledger.Refused {
			continue
		}
		p, reported := m.pool(r.Node, r.Pool)
		if !reported || !m.open(r.Node, p, v.Class) {
			return false
		}
		at := slices.IndexFunc(facts, func(f Fact) bool { return f.Owner == ledger.Volume(name) && f.Node == r.Node && f.Pool == r.Pool })
		more := charge(p, m.classes[v.Class], wish) - facts[at].Charge
		s := m.add(facts, r.Node, r.Pool)
		top, _ := m.limit(p, v.Class)
		if more > 0 && more > min(top, s.promised)-s.firm {
			return false
		}
	}
	return true
}
