package replica

import (
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Stale returns the names of volumes that need another look after the pools changed:
// devices that were lost or came back, refused steps for which there is room now, and
// volumes that only a pool knows. It leaves steps under way to the workers that take
// them. If recovered, after an outage of the provisioner, it returns all that are
// unfinished: a volume that waits for its next try need not wait longer.
func Stale(volumes []v1alpha1.Volume, node string, pools []provision.Pool, recovered bool) []string {
	records := recordsOf(pools)
	var stale []string
	for i := range volumes {
		v := &volumes[i]
		record := records[v.Name]
		delete(records, v.Name)
		if recovered && Decide(v, node, Facts{Record: record}).Step != StepNone || deservesLook(v, node, record, pools) {
			stale = append(stale, v.Name)
		}
	}
	for id := range records {
		stale = append(stale, id)
	}
	slices.Sort(stale)
	return stale
}

func deservesLook(v *v1alpha1.Volume, node string, record *provision.Volume, pools []provision.Pool) bool {
	entry, wish := v.Entry(node), wishFor(v, node)
	if entry == nil || wish == nil || !v.DeletionTimestamp.IsZero() {
		return false
	}
	switch Decide(v, node, Facts{Record: record}).Step {
	case StepReport:
		return true
	case StepCreate, StepExpand:
		return fits(v, wish, entry, record, pools)
	default:
		return false
	}
}

// fits says whether a step that was refused because of its pool may succeed now.
func fits(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, entry *v1alpha1.ReplicaStatus, record *provision.Volume, pools []provision.Pool) bool {
	if entry.Reason != v1alpha1.ReasonNoSpace && entry.Reason != v1alpha1.ReasonPoolMissing {
		return false
	}
	need := v.Spec.Capacity.Value()
	if record != nil {
		need -= record.Size
	}
	// The class is not read: the most generous limits that a class can have decide.
	generous := provision.Limits{Overprovision: provision.MaxOverprovision}
	return slices.ContainsFunc(pools, func(p provision.Pool) bool { return p.Name == wish.Pool && generous.Room(p) >= need })
}

// recordsOf are the volumes in the pools that a Volume may account for.
func recordsOf(pools []provision.Pool) map[string]*provision.Volume {
	records := map[string]*provision.Volume{}
	for i := range pools {
		for j := range pools[i].Volumes {
			if v := &pools[i].Volumes[j]; v.Inline == (provision.Inline{}) {
				records[v.ID] = v
			}
		}
	}
	return records
}
