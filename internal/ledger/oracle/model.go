package oracle

import (
	"maps"
	"slices"

	"berth.dev/berth/internal/ledger"
)

// Model is the naive ledger: all data of Volumes, and the room that is held for claims and inline volumes.
type Model struct {
	data
	holds holds

	// compared counts the comparisons.
	compared int
}

// New returns an empty model.
func New() *Model {
	return &Model{data: data{objects: newObjects(), growth: map[string]int64{}, adopted: map[string]int{}}}
}

// ObservePod mirrors the ledger.
func (m *Model) ObservePod(o ledger.PodObject) {
	switch {
	case o.Ended:
		m.ObservePodGone(o.UID)
	case o.Node != "":
		m.pods[o.UID] = o
		m.holds.bind(o.UID, o.Node)
	}
}

// ObservePodGone mirrors the ledger.
func (m *Model) ObservePodGone(uid string) {
	delete(m.pods, uid)
	m.holds.drop(uid, "")
}

// Reserve records the ledger's choices.
func (m *Model) Reserve(pod, node string, demands []ledger.Demand, choices []ledger.Choice) {
	for i := range m.holds {
		h := &m.holds[i]
		wanted := slices.ContainsFunc(choices, func(c ledger.Choice) bool { return c.Owner == h.Owner })
		kept := slices.ContainsFunc(choices, func(c ledger.Choice) bool { return c.Owner == h.Owner && c.Node == h.Node })
		if wanted && !kept {
			delete(h.Holders, Holder{pod, node})
		}
	}
	for _, c := range choices {
		d := demands[slices.IndexFunc(demands, func(d ledger.Demand) bool { return d.Owner == c.Owner })]
		if m.placedOn(c.Owner, c.Node) {
			continue // the Volume is the reservation
		}
		h := m.holds.on(c.Owner, c.Node)
		if h == nil {
			m.holds = append(m.holds, newHold(c.Owner, c.Node))
			h = &m.holds[len(m.holds)-1]
		}
		if !h.sharedBeside(pod) {
			h.Pool, h.Class, h.Bytes, h.Yields = c.Pool, d.Class, d.Bytes, d.Yields
		}
		if _, holds := h.Holders[Holder{pod, node}]; !holds {
			h.Holders[Holder{pod, node}] = false
		}
		if c.Node != node {
			h.StandbyOf[node] = true
		}
	}
}

// Unreserve mirrors the ledger.
func (m *Model) Unreserve(pod, node string) { m.holds.drop(pod, node) }

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
