package oracle

import (
	"slices"

	"berth.dev/berth/internal/ledger"
)

// Fact is one charge.
type Fact struct {
	Node, Pool      string
	Owner           ledger.Owner
	Class           string
	Bytes, Charge   int64
	Carving, Listed bool
	yields, stated  bool
	// unmade: nothing of it is there yet; over: nothing of it can be used again.
	unmade, over bool
}

// Facts works out every charge.
func (m *Model) Facts() []Fact {
	facts := m.volumeFacts()
	volumes := len(facts)
	for _, h := range m.holds {
		superseded := h.Owner.Kind == ledger.ByClaim && slices.ContainsFunc(facts[:volumes], func(f Fact) bool {
			return f.Node == h.Node && !f.over && slices.Contains(m.claimsOf(f.Owner.ID), h.Owner.ID)
		})
		if !superseded {
			f := Fact{Node: h.Node, Pool: h.Pool, Owner: h.Owner, Class: h.Class, Bytes: h.Bytes, Carving: !m.there(h.Owner, h.Node)}
			f.unmade = f.Carving
			f.yields = h.Yields && len(h.StandbyOf) > 0 && !h.meant(h.Node) && m.promised(h.Owner) != h.Node
			facts = append(facts, m.priced(f))
		}
	}
	return m.listed(facts)
}

// listed adds the items that only the reports name.
func (seen *objects) listed(facts []Fact) []Fact {
	known := len(facts)
	for node, r := range seen.reports {
		for _, p := range r.Pools {
			for _, item := range p.Inventory {
				if !slices.ContainsFunc(facts[:known], func(f Fact) bool { return f.Node == node && f.Pool == p.Name && f.Owner == item.Owner }) {
					facts = append(facts, Fact{Node: node, Pool: p.Name, Owner: item.Owner, Bytes: item.Taken, Charge: item.Taken, Listed: true})
				}
			}
		}
	}
	return facts
}

// priced fills in the charge.
func (seen *objects) priced(f Fact) Fact {
	if !f.stated {
		p, _ := seen.pool(f.Node, f.Pool)
		f.Charge = charge(p, seen.classes[f.Class], f.Bytes)
	}
	return f
}

// volumeFacts works out the charges of Volumes and remains.
func (d *data) volumeFacts() []Fact {
	facts := make([]Fact, 0, 2*len(d.volumes)+len(d.remains))
	add := func(f Fact) {
		if !slices.ContainsFunc(facts, func(g Fact) bool { return g.Owner == f.Owner && g.Node == f.Node && g.Pool == f.Pool }) {
			facts = append(facts, d.priced(f))
		}
	}
	for _, v := range d.volumes {
		for _, r := range v.Replicas {
			if f, takes := d.replicaFact(v, r); takes {
				add(f)
			}
		}
	}
	for _, x := range d.remains {
		add(x.fact)
	}
	return facts
}

func (d *data) replicaFact(v ledger.VolumeObject, r ledger.Replica) (Fact, bool) {
	bytes := max(v.Capacity, r.Actual, d.growth[v.Name])
	if r.State == ledger.Refused {
		bytes = r.Actual
	}
	f := Fact{Node: r.Node, Pool: r.Pool, Owner: ledger.Volume(v.Name), Class: v.Class, Bytes: bytes, yields: r.Yields}
	f.Carving = r.State == ledger.Pending || r.Actual > 0 && r.Actual < bytes
	f.unmade = r.State == ledger.Pending && r.Actual == 0
	if r.Taken > 0 && r.Actual >= bytes {
		f.Charge, f.stated = r.Taken, true
	}
	return f, r.State != ledger.Gone && bytes > 0
}
