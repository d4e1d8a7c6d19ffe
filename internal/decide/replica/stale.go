package replica

import (
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// fits says whether a step that was refused because of its pool may succeed now.
func fits(v view, pools []provision.Pool) bool {
	if v.Entry.Reason != v1alpha1.ReasonNoSpace && v.Entry.Reason != v1alpha1.ReasonPoolMissing {
		return false
	}
	need := v.Object.Spec.Capacity.Value()
	if v.Record != nil {
		need -= v.Record.Size
	}
	// The class is not read: the most generous limits that a class can have decide.
	generous := provision.Limits{Overprovision: provision.MaxOverprovision}
	return slices.ContainsFunc(pools, func(p provision.Pool) bool { return p.Name == v.Wish.Pool && generous.Room(p) >= need })
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
