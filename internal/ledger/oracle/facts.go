package oracle

import (
	"maps"
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

// pool returns a pool of the node's last report, or one of which only the name
// is known.
func (m *Model) pool(node, name string) (*ledger.Pool, bool) {
	r := m.reports[node]
	for i := range r.Pools {
		if r.Pools[i].Name == name {
			return &r.Pools[i], true
		}
	}
	return &ledger.Pool{Name: name}, false
}

// claimsOf are the claims that a volume serves.
func (m *Model) claimsOf(volume string) []string {
	var uids []string
	if v, present := m.volumes[volume]; present {
		uids = append(uids, v.Claim)
	}
	for _, x := range m.remains {
		if x.volume == volume {
			uids = append(uids, x.claim)
		}
	}
	for _, pv := range m.pvs {
		if pv.Volume == volume {
			uids = append(uids, pv.Claim)
		}
	}
	return uids
}

// durable is whether an object says where a claim's volume is.
func (m *Model) durable(claim string) bool {
	for _, v := range m.volumes {
		if slices.Contains(m.claimsOf(v.Name), claim) {
			return true
		}
	}
	return false
}

// promised is the node that an owner's objects name.
func (m *Model) promised(o ledger.Owner) string {
	if o.Kind == ledger.ByClaim {
		return m.claims[o.ID].SelectedNode
	}
	if pod := m.pods[o.ID]; slices.ContainsFunc(pod.Inline, func(v ledger.InlineVolume) bool { return v.Name == o.Inline }) {
		return pod.Node
	}
	return ""
}

// prune drops holds that nothing keeps.
func (m *Model) prune() {
	m.holds = slices.DeleteFunc(m.holds, func(h Hold) bool {
		claim := h.Owner.Kind == ledger.ByClaim
		durable := claim && m.durable(h.Owner.ID)
		to := m.promised(h.Owner)
		for x, bound := range h.Holders {
			if bound && (durable || !claim && to == h.Node) {
				delete(h.Holders, x)
			}
		}
		maps.DeleteFunc(h.StandbyOf, func(node string, _ bool) bool { return node != to && !h.meant(node) })
		promised := to != "" && (to == h.Node || h.StandbyOf[to])
		return len(h.Holders) == 0 && (durable || !promised)
	})
}

// standsOn is whether a volume of the claim is charged on the node already.
func (m *Model) standsOn(o ledger.Owner, node string) bool {
	if o.Kind != ledger.ByClaim {
		return false
	}
	for _, f := range m.volumeFacts() {
		if f.Node == node && !f.over && slices.Contains(m.claimsOf(f.Owner.ID), o.ID) {
			return true
		}
	}
	return false
}

// placedOn is whether an object says that a volume of the claim is on the node.
func (m *Model) placedOn(o ledger.Owner, node string) bool {
	return o.Kind == ledger.ByClaim && slices.ContainsFunc(m.volumeFacts(), func(f Fact) bool {
		return f.Node == node && !f.over && m.placed(f.Owner.ID) && slices.Contains(m.claimsOf(f.Owner.ID), o.ID)
	})
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
func (m *Model) listed(facts []Fact) []Fact {
	known := len(facts)
	for node, r := range m.reports {
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
func (m *Model) priced(f Fact) Fact {
	if !f.stated {
		p, _ := m.pool(f.Node, f.Pool)
		f.Charge = charge(p, m.classes[f.Class], f.Bytes)
	}
	return f
}

// volumeFacts works out the charges of Volumes and remains.
func (m *Model) volumeFacts() []Fact {
	facts := make([]Fact, 0, 2*len(m.volumes)+len(m.remains)+len(m.holds))
	add := func(f Fact) {
		if !slices.ContainsFunc(facts, func(g Fact) bool { return g.Owner == f.Owner && g.Node == f.Node && g.Pool == f.Pool }) {
			facts = append(facts, m.priced(f))
		}
	}
	for _, v := range m.volumes {
		for _, r := range v.Replicas {
			if f, takes := m.replicaFact(v, r); takes {
				add(f)
			}
		}
	}
	for _, x := range m.remains {
		add(x.fact)
	}
	return facts
}

func (m *Model) replicaFact(v ledger.VolumeObject, r ledger.Replica) (Fact, bool) {
	bytes := max(v.Capacity, r.Actual, m.growth[v.Name])
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
