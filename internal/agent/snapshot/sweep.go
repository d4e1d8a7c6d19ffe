package snapshot

import (
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Stale returns the names of snapshots that need another look after the pools changed: those
// that were lost or came back, whose data is copied now, for which there is room or a
// volume now, and those that only a pool knows. If recovered, after an outage of the
// provisioner, it returns all that are unfinished.
func Stale(snapshots []v1alpha1.Snapshot, node string, pools []provision.Pool, recovered bool) []string {
	records := recordsOf(pools)
	var stale []string
	for i := range snapshots {
		s := &snapshots[i]
		record := records[s.Name]
		delete(records, s.Name)
		if recovered && Decide(s, node, Facts{Record: record}).Step != StepNone || deservesLook(s, node, record, pools) {
			stale = append(stale, s.Name)
		}
	}
	for id := range records {
		stale = append(stale, id)
	}
	slices.Sort(stale)
	return stale
}

func deservesLook(s *v1alpha1.Snapshot, node string, record *provision.Snapshot, pools []provision.Pool) bool {
	entry, wish := s.Entry(node), wishFor(s, node)
	if entry == nil || wish == nil || !s.DeletionTimestamp.IsZero() {
		return false
	}
	switch Decide(s, node, Facts{Record: record}).Step {
	case StepReport:
		return true
	case StepTake:
		return possible(s, wish, entry, pools)
	default:
		return false
	}
}

// possible says whether a snapshot that was refused because of its pool may be taken now.
func possible(s *v1alpha1.Snapshot, wish *v1alpha1.ReplicaSpec, entry *v1alpha1.SnapshotReplica, pools []provision.Pool) bool {
	at := slices.IndexFunc(pools, func(p provision.Pool) bool { return p.Name == wish.Pool })
	if at < 0 {
		return false
	}
	volume := slices.IndexFunc(pools[at].Volumes, func(v provision.Volume) bool { return v.ID == s.Spec.Volume })
	if volume < 0 {
		return false
	}
	switch entry.Reason {
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
