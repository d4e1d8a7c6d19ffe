package snapshot

import (
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// possible says whether a snapshot that was refused because of its pool may be taken now.
func possible(v view, pools []provision.Pool) bool {
	at := slices.IndexFunc(pools, func(p provision.Pool) bool { return p.Name == v.Wish.Pool })
	if at < 0 {
		return false
	}
	volume := slices.IndexFunc(pools[at].Volumes, func(o provision.Volume) bool { return o.ID == v.Object.Spec.Volume })
	if volume < 0 {
		return false
	}
	switch v.Entry.Reason {
	case v1alpha1.ReasonSourceMissing:
		return true
	case v1alpha1.ReasonNoSpace, v1alpha1.ReasonPoolMissing:
		// The class is not read: the most generous limits that a class can have decide.
		generous := provision.Limits{Overprovision: provision.MaxOverprovision}
		return generous.Room(pools[at]) >= pools[at].Volumes[volume].Size
	default:
		return false
	}
}

func recordsOf(pools []provision.Pool) map[string]*provision.Snapshot {
	records := map[string]*provision.Snapshot{}
	for i := range pools {
		for j := range pools[i].Snapshots {
			s := &pools[i].Snapshots[j]
			records[s.ID] = s
		}
	}
	return records
}
