package replica

import (
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Stale names the volumes that deserve another look after the pools changed:
// those whose record asks for a step, and those of which only a pool knows. A
// step that was refused for room is worth another try only if the room is
// there now.
func Stale(volumes []v1alpha1.Volume, node string, pools []provision.Pool) []string {
	records, free := recordsOf(pools), freeOf(pools)
	var stale []string
	for i := range volumes {
		v := &volumes[i]
		record := records[v.Name]
		delete(records, v.Name)
		d := Decide(v, node, record)
		if d.Step != StepNone && !hopeless(v, node, record, free) {
			stale = append(stale, v.Name)
		}
	}
	for id := range records {
		stale = append(stale, id)
	}
	slices.Sort(stale)
	return stale
}

// hopeless says whether a step was refused for room that is still missing.
func hopeless(v *v1alpha1.Volume, node string, record *provision.Volume, free map[string]int64) bool {
	entry, wish := entryOf(v, node), wishFor(v, node)
	if entry == nil || wish == nil || entry.Reason != v1alpha1.ReasonNoSpace || !v.DeletionTimestamp.IsZero() {
		return false
	}
	if !sameQuantity(entry.Requested, &v.Spec.Capacity) {
		return false
	}
	need := v.Spec.Capacity.Value()
	if record != nil {
		need -= record.Size
	}
	return need > free[wish.Pool]
}

func recordsOf(pools []provision.Pool) map[string]*provision.Volume {
	records := map[string]*provision.Volume{}
	for i := range pools {
		for j := range pools[i].Volumes {
			v := &pools[i].Volumes[j]
			records[v.ID] = v
		}
	}
	return records
}

func freeOf(pools []provision.Pool) map[string]int64 {
	free := map[string]int64{}
	for _, p := range pools {
		free[p.Name] = p.Free
	}
	return free
}
