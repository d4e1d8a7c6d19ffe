package replica

import (
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Step is the next action for one volume on this node.
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
	// Entry is the node's report on the volume; nil when it has nothing to add.
	Entry *v1alpha1.ReplicaStatus
	// Format names the filesystem that is still to be made on the replica.
	Format v1alpha1.FSType
	// Message explains StepKeep.
	Message string
}

// Decide compares a volume with the facts of this node.
func Decide(v *v1alpha1.Volume, node string, f Facts) Decision {
	wish := wishFor(v, node)
	if wish == nil || !v.DeletionTimestamp.IsZero() {
		return decideAbsent(v, node, f)
	}
	if f.Record == nil {
		return decideMissing(v, wish)
	}
	return decidePresent(v, wish, f)
}

// decideAbsent is for a replica that should not be here.
func decideAbsent(v *v1alpha1.Volume, node string, f Facts) Decision {
	entry := v.Entry(node)
	owed := entry != nil || wishFor(v, node) != nil // with a wish, the object is being deleted
	switch {
	case f.Record == nil && !owed:
		return Decision{Step: StepNone}
	case f.Record == nil && f.Lost:
		return report(entry, lostEntry(v, entry))
	case f.Record == nil:
		return report(entry, goneEntry(v, node))
	case f.removable(v, node):
		return Decision{Step: StepRemove}
	}
	d := Decision{Step: StepKeep, Message: fmt.Sprintf(
		"volume %s in pool %s of node %s is kept: the Volume object does not want it, may come from an old backup, and nothing proves that the data is its own and that no process was told of it; %s",
		v.Name, f.Record.Pool.Name, node, remedy(node, v.Name))}
	if owed {
		d.Entry = keptApartEntry(v, node, f.Record)
	}
	return d
}

// remedy tells an administrator what to do about data that is not its object's own.
func remedy(node, name string) string {
	return fmt.Sprintf("`kubectl berth adopt %s %s` makes a Volume for it as it is, and `kubectl berth forget %s %s` lets it go once there is no Volume of its name",
		node, name, node, name)
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
func decidePresent(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, f Facts) Decision {
	entry, record := v.Entry(wish.Node), f.Record
	found := f.found(v, entry)
	if other := otherThan(v, wish, record, found); other != "" {
		return report(entry, conflictEntry(v, wish, record, fmt.Sprintf(
			"node %s: %s: it is kept as it is; %s", wish.Node, other, remedy(wish.Node, v.Name))))
	}
	switch {
	case record.Problem != "":
		return report(entry, unusableEntry(v, wish, record, v1alpha1.ReasonDeviceMissing, fmt.Sprintf(
			"node %s: %s", wish.Node, record.Problem)))
	case record.Copying:
		return report(entry, copyingEntry(v, wish, record))
	case record.Size < v.Spec.Capacity.Value():
		return Decision{Step: StepExpand}
	case found:
		return report(entry, foundEntry(v, wish, record))
	}
	d := report(entry, readyEntry(v, wish, record))
	if record.Filesystem == "" && !v.Reserved() {
		d.Format = v.Spec.FSType
	}
	return d
}

// otherThan says how the record differs from the wish of the volume; empty if it does not.
func otherThan(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, record *provision.Volume, found bool) string {
	unheard := found && !v.Entry(wish.Node).HasData()
	switch {
	case record.Pool.Name != wish.Pool:
		return fmt.Sprintf("the volume is in pool %s, not in %s", record.Pool.Name, wish.Pool)
	case record.Source != sourceOf(v):
		return fmt.Sprintf("the volume was made from %s, not from %s", nameOf(record.Source), nameOf(sourceOf(v)))
	case record.Filesystem != "" && record.Filesystem != formatOf(v):
		return fmt.Sprintf("the volume is recorded as %s, not as %s", record.Filesystem, formatOf(v))
	case record.Content.Tree != provision.ByItself(string(v.Spec.FSType)):
		return fmt.Sprintf("the volume is %s, which is not for filesystem %q", record.Content.Source, v.Spec.FSType)
	case v.Spec.Adopted && record.Filesystem == "" && v.Spec.VolumeMode == v1alpha1.Filesystem && !record.Content.IsTree():
		// The data may be a block volume's, which has no filesystem: making one would destroy
		// it. In a tree Berth makes none.
		return fmt.Sprintf("the volume was adopted with filesystem %s, and no filesystem was ever made on it", v.Spec.FSType)
	case found && record.Problem != "": // DeviceMissing would hide that it was found
		return "the volume was there before, and cannot be used: " + record.Problem
	case unheard && record.Size < v.Spec.Capacity.Value():
		// Data that may be another object's is not touched, not even to make it larger.
		return fmt.Sprintf("the volume was there before and has %d bytes, fewer than the %d asked", record.Size, v.Spec.Capacity.Value())
	}
	return ""
}

// formatOf returns the filesystem that is recorded of the volume once it may hold data.
func formatOf(v *v1alpha1.Volume) string {
	if v.Spec.VolumeMode == v1alpha1.Block {
		return provision.Raw
	}
	return string(v.Spec.FSType)
}

// nameOf names a source for people.
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

// report returns StepReport with next, or StepNone if the entry says the same already.
func report(entry, next *v1alpha1.ReplicaStatus) Decision {
	if sameEntry(entry, next) {
		return Decision{Step: StepNone, Entry: next}
	}
	return Decision{Step: StepReport, Entry: next}
}

// wasCarved says whether the entry proves that the replica's data was here once. An
// unfinished copy does not count: no pod could use it, and its source is still there.
func wasCarved(e *v1alpha1.ReplicaStatus) bool {
	return e != nil && (e.State == v1alpha1.ReplicaReady || e.Reason == v1alpha1.ReasonDeviceMissing)
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
