package snapshot

import (
	"fmt"
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Step is the next action for one snapshot on this node.
type Step string

const (
	// StepNone: the node has what the object wants, and its entry says so.
	StepNone Step = "None"
	// StepReport: only the entry is out of date.
	StepReport Step = "Report"
	// StepTake: take the snapshot.
	StepTake Step = "Take"
	// StepRemove: delete the snapshot.
	StepRemove Step = "Remove"
	// StepKeep: the snapshot should not be here, and nothing proves that it may go.
	StepKeep Step = "Keep"
)

// Decision is a step and why.
type Decision struct {
	Step Step
	// Entry is the node's report on the snapshot; nil when it has nothing to add.
	Entry *v1alpha1.SnapshotReplica
	// Message explains StepKeep.
	Message string
}

// final are the reasons after which no second try to take the snapshot can help.
var final = []string{v1alpha1.ReasonUnsupported, v1alpha1.ReasonInvalid, v1alpha1.ReasonConflict}

// Facts are the node's knowledge of one snapshot, besides its entry.
type Facts struct {
	// Record is the provisioner's; nil when the provisioner says that it has none. A
	// provisioner that does not answer must not be taken for one that has none.
	Record *provision.Snapshot
	// Lost is whether a missing record proves nothing: the pool that the entry names is not
	// in the node's report, and no administrator has given the snapshot up.
	Lost bool
}

// Decide compares a snapshot with the facts of this node.
func Decide(s *v1alpha1.Snapshot, node string, f Facts) Decision {
	wish := wishFor(s, node)
	if wish == nil || !s.DeletionTimestamp.IsZero() {
		return decideAbsent(s, node, f)
	}
	if f.Record == nil {
		return decideMissing(s, wish)
	}
	return decidePresent(s, wish, f.Record)
}

// decideAbsent is for a snapshot that should not be here.
func decideAbsent(s *v1alpha1.Snapshot, node string, f Facts) Decision {
	entry := s.Entry(node)
	owed := entry != nil || wishFor(s, node) != nil // with a wish, the object is being deleted
	switch {
	case f.Record == nil && !owed:
		return Decision{Step: StepNone}
	case f.Record == nil && f.Lost:
		return report(entry, lostEntry(s, entry))
	case f.Record == nil:
		return report(entry, goneEntry(s, node))
	case proved(s, entry, f.Record):
		return Decision{Step: StepRemove}
	}
	d := Decision{Step: StepKeep, Message: fmt.Sprintf(
		"snapshot %s in pool %s of node %s is kept: nothing shows that it is the one of the Snapshot object, which does not want it and may come from an old backup; %s",
		s.Name, f.Record.Pool.Name, node, remedy(node, s.Name))}
	if owed {
		d.Entry = keptApartEntry(s, node, f.Record)
	}
	return d
}

// remedy tells an administrator what to do about a snapshot that is not its object's own.
func remedy(node, name string) string {
	return fmt.Sprintf("`kubectl berth adopt %s %s` makes a Snapshot for it as it is, and `kubectl berth forget %s %s` lets it go once there is no Snapshot of its name",
		node, name, node, name)
}

// proved says whether the record is the very snapshot that the entry says was taken. The
// name proves nothing: the object may come from an old backup of the API server.
func proved(s *v1alpha1.Snapshot, entry *v1alpha1.SnapshotReplica, record *provision.Snapshot) bool {
	return entry != nil && entry.Pool == record.Pool.Name && record.Volume == s.Spec.Volume &&
		sameTaken(entry, takenEntry(s, &v1alpha1.ReplicaSpec{Node: entry.Node}, record))
}

// decideMissing is for a snapshot that should be here and is not.
func decideMissing(s *v1alpha1.Snapshot, wish *v1alpha1.ReplicaSpec) Decision {
	entry := s.Entry(wish.Node)
	switch {
	case s.Spec.Adopted, entry != nil && entry.Taken != nil:
		return report(entry, failedEntry(s, wish, v1alpha1.ReasonDeviceMissing, fmt.Sprintf(
			"node %s: pool %s no longer has snapshot %s; it is not taken again, because it would hold other data", wish.Node, wish.Pool, s.Name)))
	case entry == nil:
		return Decision{Step: StepTake}
	case entry.State == v1alpha1.SnapshotFailed && slices.Contains(final, entry.Reason):
		return Decision{Step: StepNone, Entry: entry}
	default:
		return Decision{Step: StepTake}
	}
}

// decidePresent is for a snapshot that should be here and is.
func decidePresent(s *v1alpha1.Snapshot, wish *v1alpha1.ReplicaSpec, record *provision.Snapshot) Decision {
	entry := s.Entry(wish.Node)
	conflict := func(format string, args ...any) Decision {
		return report(entry, failedEntry(s, wish, v1alpha1.ReasonConflict, fmt.Sprintf(
			"node %s: %s: it is kept as it is; %s", wish.Node, fmt.Sprintf(format, args...), remedy(wish.Node, s.Name))))
	}
	next := takenEntry(s, wish, record)
	switch {
	case record.Volume != s.Spec.Volume:
		return conflict("the snapshot is of volume %s, not of %s", record.Volume, s.Spec.Volume)
	case record.Pool.Name != wish.Pool:
		return conflict("the snapshot is in pool %s, not in %s", record.Pool.Name, wish.Pool)
	case entry != nil && entry.Taken != nil && !sameTaken(entry, next):
		return conflict("the snapshot here is another one, taken %s: the one that was reported is not replaced by it", record.Taken)
	case record.Problem != "":
		next.State, next.Reason = v1alpha1.SnapshotFailed, v1alpha1.ReasonDeviceMissing
		next.Message = clipped("node %s: %s", wish.Node, record.Problem)
	}
	return report(entry, next)
}

// report returns StepReport with next, or StepNone if the entry says the same already.
func report(entry, next *v1alpha1.SnapshotReplica) Decision {
	if sameEntry(entry, next) {
		return Decision{Step: StepNone, Entry: next}
	}
	return Decision{Step: StepReport, Entry: next}
}

func wishFor(s *v1alpha1.Snapshot, node string) *v1alpha1.ReplicaSpec {
	for i := range s.Spec.Replicas {
		if s.Spec.Replicas[i].Node == node {
			return &s.Spec.Replicas[i]
		}
	}
	return nil
}
