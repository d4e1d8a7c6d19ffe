package replica

import (
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// removable says whether data that should not be here is proved to be that of this very object,
// or unused. The name proves nothing: the object may come from an old backup of the API server,
// and the data may be newer than that.
func removable(v view) bool {
	switch reserved := v.Object.Reserved(); {
	case v.Wanted():
		return false
	case v.Made, v.Record.Copying, isBlank(v): // no pod could use it yet
		return true
	case reserved && found(v): // the reservation did not make this data
		return false
	case !reserved && v.Wish == nil:
		// CreateVolume may have returned it before it was taken off the node. A missing
		// PersistentVolume proves nothing if both come from an old backup.
		return false
	}
	return v.Entry.HasData() && v.Entry.Pool == v.Record.Pool.Name
}

// found says whether the data was there before the node made anything for the object, or is
// newer than the object's state. Berth neither formats a reservation nor gives it to a pod. So a
// filesystem on one, or the record that a pod was given the block device, shows that the
// reservation's mark is from an old backup.
func found(v view) bool {
	switch {
	case v.Record.Copying || isBlank(v) || v.Object.Spec.Adopted:
		return false
	case v.Object.Reserved() && v.Record.Filesystem != "" && v.Object.Spec.Source == nil:
		return true
	case v.Entry.HasData():
		return v.Entry.Reason == v1alpha1.ReasonFound
	}
	return !v.Made
}

// isBlank says whether a filesystem should be there and none was ever made. It is false for a raw
// block volume, since no record tells whether a pod wrote to it, and for data with a problem.
func isBlank(v view) bool {
	spec := v.Object.Spec
	return spec.VolumeMode == v1alpha1.Filesystem && v.Record.Filesystem == "" && v.Record.Problem == "" && !spec.Adopted
}

// difference says how the data differs from what the volume wants; empty if it does not.
func difference(v view) string {
	spec, record := v.Object.Spec, v.Record
	foreign := found(v)
	unheard := foreign && !v.Entry.HasData()
	switch {
	case record.Pool.Name != v.Wish.Pool:
		return fmt.Sprintf("the volume is in pool %s, not in %s", record.Pool.Name, v.Wish.Pool)
	case record.Source != SourceOf(v.Object):
		return fmt.Sprintf("the volume was made from %s, not from %s", nameOf(record.Source), nameOf(SourceOf(v.Object)))
	case record.Filesystem != "" && record.Filesystem != formatOf(v.Object):
		return fmt.Sprintf("the volume is recorded as %s, not as %s", record.Filesystem, formatOf(v.Object))
	case record.Content.Tree != provision.ByItself(string(spec.FSType)):
		return fmt.Sprintf("the volume is %s, which is not for filesystem %q", record.Content.Source, spec.FSType)
	case spec.Adopted && record.Filesystem == "" && spec.VolumeMode == v1alpha1.Filesystem && !record.Content.IsTree():
		// The data may be a block volume's, which has no filesystem: making one would destroy
		// it. In a tree Berth makes none.
		return fmt.Sprintf("the volume was adopted with filesystem %s, and no filesystem was ever made on it", spec.FSType)
	case foreign && record.Problem != "": // DeviceMissing would hide that it was found
		return "the volume was there before, and cannot be used: " + record.Problem
	case unheard && record.Size < spec.Capacity.Value():
		// Data that may be another object's is not touched, not even to make it larger.
		return fmt.Sprintf("the volume was there before and has %d bytes, fewer than the %d asked", record.Size, spec.Capacity.Value())
	}
	return ""
}

// SourceOf returns the source that a volume begins as a copy of.
func SourceOf(v *v1alpha1.Volume) provision.Source {
	if v.Spec.Source == nil {
		return provision.Source{}
	}
	return provision.Source{Snapshot: v.Spec.Source.Snapshot, Volume: v.Spec.Source.Volume}
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
