package oracle

import (
	"slices"

	"berth.dev/berth/internal/ledger"
)

// objects are all objects as they were seen last.
type objects struct {
	classes map[string]ledger.Class
	reports map[string]ledger.Report
	volumes map[string]ledger.VolumeObject
	claims  map[string]ledger.ClaimObject
	pvs     map[string]ledger.PVObject
	pods    map[string]ledger.PodObject
}

func newObjects() objects {
	return objects{
		classes: map[string]ledger.Class{}, reports: map[string]ledger.Report{},
		volumes: map[string]ledger.VolumeObject{}, claims: map[string]ledger.ClaimObject{},
		pvs: map[string]ledger.PVObject{}, pods: map[string]ledger.PodObject{},
	}
}

// ObserveClass mirrors the ledger.
func (seen *objects) ObserveClass(c ledger.Class) { seen.classes[c.Name] = c }

// ObserveClassGone mirrors the ledger.
func (seen *objects) ObserveClassGone(name string) { delete(seen.classes, name) }

// ObservePV mirrors the ledger.
func (seen *objects) ObservePV(o ledger.PVObject) { seen.pvs[o.Name] = o }

// ObservePVGone mirrors the ledger.
func (seen *objects) ObservePVGone(name string) { delete(seen.pvs, name) }

// ObserveClaim mirrors the ledger.
func (seen *objects) ObserveClaim(o ledger.ClaimObject) { seen.claims[o.UID] = o }

// ObserveClaimGone mirrors the ledger.
func (seen *objects) ObserveClaimGone(uid string) { delete(seen.claims, uid) }

// pool returns a pool of the node's last report, or one of which only the name
// is known.
func (seen *objects) pool(node, name string) (*ledger.Pool, bool) {
	r := seen.reports[node]
	for i := range r.Pools {
		if r.Pools[i].Name == name {
			return &r.Pools[i], true
		}
	}
	return &ledger.Pool{Name: name}, false
}

// promised is the node that an owner's objects name.
func (seen *objects) promised(o ledger.Owner) string {
	if o.Kind == ledger.ByClaim {
		return seen.claims[o.ID].SelectedNode
	}
	if pod := seen.pods[o.ID]; slices.ContainsFunc(pod.Inline, func(v ledger.InlineVolume) bool { return v.Name == o.Inline }) {
		return pod.Node
	}
	return ""
}

// asked is the class and the size that an owner's own object asks for.
func (seen *objects) asked(o ledger.Owner) (class string, bytes int64) {
	if o.Kind == ledger.ByClaim {
		c := seen.claims[o.ID]
		return c.Class, c.Requested
	}
	for _, v := range seen.pods[o.ID].Inline {
		if v.Name == o.Inline {
			return v.Class, v.Bytes
		}
	}
	return "", 0
}

// there is whether an inline volume has been made: its pod has started, or its node
// lists it.
func (seen *objects) there(o ledger.Owner, node string) bool {
	if o.Kind != ledger.ByPod {
		return false
	}
	return seen.pods[o.ID].Started || slices.ContainsFunc(seen.reports[node].Pools, func(p ledger.Pool) bool {
		return slices.ContainsFunc(p.Inventory, func(i ledger.Item) bool { return i.Owner == o })
	})
}

// unheard is whether a node's report is older than the revision.
func (seen *objects) unheard(node string, revision int64) bool {
	r, reported := seen.reports[node]
	return reported && r.Generation > 0 && r.Generation < revision
}

// placed is whether an object says where the volume is.
func (seen *objects) placed(volume string) bool {
	_, present := seen.volumes[volume]
	return present
}
