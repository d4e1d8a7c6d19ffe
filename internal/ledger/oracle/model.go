package oracle

import (
	"maps"
	"slices"

	"berth.dev/berth/internal/ledger"
)

// Model is the naive ledger.
type Model struct {
	classes map[string]ledger.Class
	reports map[string]ledger.Report
	volumes map[string]ledger.VolumeObject
	claims  map[string]ledger.ClaimObject
	pvs     map[string]ledger.PVObject
	pods    map[string]ledger.PodObject

	holds   []Hold
	remains []remain
	// growth is the size that a claim's wish was granted, by Volume.
	growth map[string]int64

	// adopted counts the choices taken over from the ledger, by kind.
	adopted map[string]int
	// compared counts the comparisons.
	compared int
}

// Hold is the room that pods hold for an owner on a node.
type Hold struct {
	Owner      ledger.Owner
	Node, Pool string
	Class      string
	Bytes      int64
	// Holders are the pods, each with the node that it is to run on, and whether it was seen
	// bound there.
	Holders map[Holder]bool
	// StandbyOf are the nodes that it is a standby for.
	StandbyOf map[string]bool
	// Yields is whether it yields as long as it is only a standby.
	Yields bool
}

// Holder is a pod that may run on a node.
type Holder struct{ Pod, Own string }

// remain is a replica that was gone, or whose Volume was gone, before its data.
type remain struct {
	volume, claim string
	fact          Fact
	revision      int64
}

// New returns an empty model.
func New() *Model {
	return &Model{
		classes: map[string]ledger.Class{}, reports: map[string]ledger.Report{},
		volumes: map[string]ledger.VolumeObject{}, claims: map[string]ledger.ClaimObject{},
		pvs: map[string]ledger.PVObject{}, pods: map[string]ledger.PodObject{}, growth: map[string]int64{},
		adopted: map[string]int{},
	}
}

// ObserveNode mirrors the ledger.
func (m *Model) ObserveNode(r ledger.Report) {
	m.reports[r.Node] = r
	m.remains = slices.DeleteFunc(m.remains, func(x remain) bool {
		return x.fact.Node == r.Node && (r.Generation == 0 || x.revision <= r.Generation)
	})
}

// ObserveNodeGone mirrors the ledger.
func (m *Model) ObserveNodeGone(name string) {
	delete(m.reports, name)
	m.remains = slices.DeleteFunc(m.remains, func(x remain) bool { return x.fact.Node == name })
}

// ObserveClass mirrors the ledger.
func (m *Model) ObserveClass(c ledger.Class) { m.classes[c.Name] = c }

// ObserveClassGone mirrors the ledger.
func (m *Model) ObserveClassGone(name string) { delete(m.classes, name) }

// ObserveVolume mirrors the ledger.
func (m *Model) ObserveVolume(o ledger.VolumeObject) {
	if !slices.Equal(live(m.volumes[o.Name]), live(o)) {
		delete(m.growth, o.Name)
	}
	var leaving []remain
	for _, f := range m.volumeFacts() {
		if f.Owner != ledger.Volume(o.Name) || !slices.ContainsFunc(o.Replicas, func(r ledger.Replica) bool {
			return r.Node == f.Node && r.Pool == f.Pool && r.State == ledger.Gone
		}) {
			continue
		}
		x := remain{o.Name, o.Claim, f, o.Revision}
		at := slices.IndexFunc(m.remains, func(x remain) bool {
			return x.volume == o.Name && x.fact.Node == f.Node && x.fact.Pool == f.Pool
		})
		if at >= 0 {
			x.revision = m.remains[at].revision
		} else if !m.unheard(f.Node, o.Revision) {
			continue
		}
		x.fact.stated, x.fact.over = true, true
		m.adopted["replicas that are gone"]++
		leaving = append(leaving, x)
	}
	m.volumes[o.Name] = o
	m.remains = append(slices.DeleteFunc(m.remains, func(x remain) bool { return x.volume == o.Name }), leaving...)
}

// unheard is whether a node's report is older than the revision.
func (m *Model) unheard(node string, revision int64) bool {
	r, reported := m.reports[node]
	return reported && r.Generation > 0 && r.Generation < revision
}

// live are the places that a growth was granted for.
func live(o ledger.VolumeObject) []string {
	var places []string
	for _, r := range o.Replicas {
		if r.State == ledger.Pending || r.State == ledger.Ready {
			places = append(places, r.Node+"/"+r.Pool)
		}
	}
	slices.Sort(places)
	return places
}

// ObserveVolumeGone mirrors the ledger.
func (m *Model) ObserveVolumeGone(name string, revision int64) {
	o, present := m.volumes[name]
	if !present {
		return
	}
	// Items that the node only lists are left out: they may be of an earlier Volume
	// of this name, elsewhere.
	for _, f := range m.volumeFacts() {
		if f.Owner == ledger.Volume(name) && !m.remainsAt(name, f.Node, f.Pool) && m.unheard(f.Node, revision) {
			f.stated = true
			m.adopted["remains"]++
			m.remains = append(m.remains, remain{name, o.Claim, f, revision})
		}
	}
	delete(m.volumes, name)
	delete(m.growth, name)
}

// remainsAt is whether something remains of a volume at a place.
func (m *Model) remainsAt(volume, node, pool string) bool {
	return slices.ContainsFunc(m.remains, func(x remain) bool {
		return x.volume == volume && x.fact.Node == node && x.fact.Pool == pool
	})
}

// ObservePV mirrors the ledger.
func (m *Model) ObservePV(o ledger.PVObject) { m.pvs[o.Name] = o }

// ObservePVGone mirrors the ledger.
func (m *Model) ObservePVGone(name string) { delete(m.pvs, name) }

// ObserveClaim mirrors the ledger.
func (m *Model) ObserveClaim(o ledger.ClaimObject) { m.claims[o.UID] = o }

// ObserveClaimGone mirrors the ledger.
func (m *Model) ObserveClaimGone(uid string) { delete(m.claims, uid) }

// ObservePod mirrors the ledger.
func (m *Model) ObservePod(o ledger.PodObject) {
	switch {
	case o.Ended:
		m.ObservePodGone(o.UID)
	case o.Node != "":
		m.pods[o.UID] = o
		for i := range m.holds {
			for x := range m.holds[i].Holders {
				switch {
				case x.Pod != o.UID:
				case x.Own == o.Node:
					m.holds[i].Holders[x] = true
				default:
					delete(m.holds[i].Holders, x)
				}
			}
		}
	}
}

// ObservePodGone mirrors the ledger.
func (m *Model) ObservePodGone(uid string) {
	delete(m.pods, uid)
	m.drop(uid, "")
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
		h := m.hold(c.Owner, c.Node)
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

func newHold(o ledger.Owner, node string) Hold {
	return Hold{Owner: o, Node: node, Holders: map[Holder]bool{}, StandbyOf: map[string]bool{}}
}

// meant is whether a pod that holds the room is to run on the node.
func (h *Hold) meant(node string) bool {
	for x := range h.Holders {
		if x.Own == node {
			return true
		}
	}
	return false
}

// Unreserve mirrors the ledger.
func (m *Model) Unreserve(pod, node string) { m.drop(pod, node) }

func (m *Model) drop(pod, node string) {
	for i := range m.holds {
		maps.DeleteFunc(m.holds[i].Holders, func(x Holder, _ bool) bool { return x.Pod == pod && (node == "" || x.Own == node) })
	}
}

func (m *Model) hold(o ledger.Owner, node string) *Hold {
	for i := range m.holds {
		if m.holds[i].Owner == o && m.holds[i].Node == node {
			return &m.holds[i]
		}
	}
	return nil
}
