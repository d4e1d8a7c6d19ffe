package replica

import (
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Step is what to do next about one volume on this node.
type Step string

const (
	// StepNone: the node has what the volume wants, and its entry says so.
	StepNone Step = "None"
	// StepReport: only the entry is out of date.
	StepReport Step = "Report"
	// StepCreate: carve the replica.
	StepCreate Step = "Create"
	// StepExpand: make the replica larger.
	StepExpand Step = "Expand"
	// StepRemove: delete the replica's data.
	StepRemove Step = "Remove"
	// StepKeep: the data should not be here, and nothing proves that it may go.
	StepKeep Step = "Keep"
)

// Decision is a step and why.
type Decision struct {
	Step Step
	// Entry is what the node has to say; nil when it has nothing to add.
	Entry *v1alpha1.ReplicaStatus
	// Format names the filesystem that is still to be made on the replica.
	Format v1alpha1.FSType
	// Message explains StepKeep.
	Message string
}

// Decide compares a volume with this node's record of it; record is nil when
// the provisioner says that it has none. A provisioner that could not be asked
// must not be taken for one that has none.
func Decide(v *v1alpha1.Volume, node string, record *provision.Volume) Decision {
	wish := wishFor(v, node)
	if wish == nil || !v.DeletionTimestamp.IsZero() {
		return decideAbsent(v, node, record)
	}
	if record == nil {
		return decideMissing(v, wish)
	}
	return decidePresent(v, wish, record)
}

// decideAbsent is for a replica that should not be here.
func decideAbsent(v *v1alpha1.Volume, node string, record *provision.Volume) Decision {
	entry := v.Entry(node)
	deleting := !v.DeletionTimestamp.IsZero()
	switch {
	case record == nil && (entry != nil || deleting && wishFor(v, node) != nil):
		return report(entry, goneEntry(v, node))
	case record == nil:
		return Decision{Step: StepNone}
	case deleting, entry != nil:
		return Decision{Step: StepRemove}
	case v.Spec.VolumeMode == v1alpha1.Filesystem && record.Filesystem == "" && !v.Spec.Adopted:
		// Carved for a placement that was taken back before it was reported. No
		// filesystem was ever on it, so there is nothing to lose.
		return Decision{Step: StepRemove}
	case record.Copying: // nobody could use it yet
		return Decision{Step: StepRemove}
	default:
		return Decision{Step: StepKeep, Message: fmt.Sprintf(
			"volume %s on node %s is not in the Volume's spec and has no entry in its status: the object may come from an old backup; remove the data by hand if it is not needed",
			v.Name, node)}
	}
}

// decideMissing is for a replica that should be here and is not.
func decideMissing(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec) Decision {
	entry := v.Entry(wish.Node)
	if !wasCarved(entry) && !v.Spec.Adopted {
		return Decision{Step: StepCreate}
	}
	return report(entry, failedEntry(v, wish, v1alpha1.ReasonDeviceMissing, fmt.Sprintf(
		"node %s: pool %s no longer has volume %s; it is not made again, because its data would be missing", wish.Node, wish.Pool, v.Name)))
}

// decidePresent is for a replica that should be here and is.
func decidePresent(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, record *provision.Volume) Decision {
	entry := v.Entry(wish.Node)
	switch {
	case record.Pool.Name != wish.Pool:
		return report(entry, failedEntry(v, wish, v1alpha1.ReasonConflict, fmt.Sprintf(
			"node %s: the volume is in pool %s, not in %s", wish.Node, record.Pool.Name, wish.Pool)))
	case record.Source != sourceOf(v):
		return report(entry, failedEntry(v, wish, v1alpha1.ReasonConflict, fmt.Sprintf(
			"node %s: the volume was made from %s, not from %s", wish.Node, nameOf(record.Source), nameOf(sourceOf(v)))))
	case record.Filesystem != "" && record.Filesystem != string(v.Spec.FSType):
		return report(entry, failedEntry(v, wish, v1alpha1.ReasonConflict, fmt.Sprintf(
			"node %s: the volume bears filesystem %s, not %q", wish.Node, record.Filesystem, v.Spec.FSType)))
	case provision.IsDataset(record.Device) != (byItself(v) != ""):
		return report(entry, failedEntry(v, wish, v1alpha1.ReasonConflict, fmt.Sprintf(
			"node %s: the volume is %s, which is not for filesystem %q", wish.Node, record.Device, v.Spec.FSType)))
	case v.Spec.Adopted && record.Filesystem == "" && v.Spec.VolumeMode == v1alpha1.Filesystem && !provision.IsDataset(record.Device):
		// A block volume's data has no filesystem, and making one would be its end. On a
		// dataset none is made.
		return report(entry, failedEntry(v, wish, v1alpha1.ReasonConflict, fmt.Sprintf(
			"node %s: the volume was adopted with filesystem %s, and no filesystem was ever made on it", wish.Node, v.Spec.FSType)))
	case record.Problem != "":
		return report(entry, failedEntry(v, wish, v1alpha1.ReasonDeviceMissing, fmt.Sprintf(
			"node %s: %s", wish.Node, record.Problem)))
	case record.Copying:
		return report(entry, copyingEntry(v, wish, record))
	case record.Size < v.Spec.Capacity.Value():
		return Decision{Step: StepExpand}
	}
	d := report(entry, readyEntry(v, wish, record))
	if record.Filesystem == "" {
		d.Format = v.Spec.FSType
	}
	return d
}

// nameOf is a source for people.
func nameOf(s provision.Source) string {
	switch {
	case s.Snapshot != "":
		return "snapshot " + s.Snapshot
	case s.Volume != "":
		return "volume " + s.Volume
	default:
		return "nothing"
	}
}

// report says next unless the entry says it already.
func report(entry, next *v1alpha1.ReplicaStatus) Decision {
	if sameEntry(entry, next) {
		return Decision{Step: StepNone, Entry: next}
	}
	return Decision{Step: StepReport, Entry: next}
}

// wasCarved says whether the entry proves that the replica's data was here once. A
// copy that was not finished was of no use to anybody, and its source is there still.
func wasCarved(e *v1alpha1.ReplicaStatus) bool {
	return e != nil && (e.State == v1alpha1.ReplicaReady ||
		e.State == v1alpha1.ReplicaFailed && e.Reason == v1alpha1.ReasonDeviceMissing)
}

// departed says whether the replica should not be here and the entry says that
// it is not.
func departed(v *v1alpha1.Volume, node string) bool {
	entry := v.Entry(node)
	unwanted := wishFor(v, node) == nil || !v.DeletionTimestamp.IsZero()
	return unwanted && entry != nil && entry.State == v1alpha1.ReplicaGone
}

func wishFor(v *v1alpha1.Volume, node string) *v1alpha1.ReplicaSpec {
	for i := range v.Spec.Replicas {
		if v.Spec.Replicas[i].Node == node {
			return &v.Spec.Replicas[i]
		}
	}
	return nil
}
