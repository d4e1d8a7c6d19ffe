package replica

import (
	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Facts are the node's knowledge of one volume, besides its entry.
type Facts struct {
	// Record is the provisioner's; nil when the provisioner says that it has none. A
	// provisioner that does not answer must not be taken for one that has none.
	Record *provision.Volume
	// Made is whether this process made the data, after it saw that the node had nothing of
	// the volume's name.
	Made bool
	// Lost is whether a missing record proves nothing: the pool that the entry names is not
	// in the node's report, and no administrator has given the data up.
	Lost bool
}

// removable says whether the data is proved to be that of this very object, or unused. The
// name proves nothing: the object may come from an old backup of the API server, and the
// data may be newer than that.
func (f Facts) removable(v *v1alpha1.Volume, node string) bool {
	entry := v.Entry(node)
	switch {
	case f.Made, f.Record.Copying, f.blank(v): // no pod could use it yet
		return true
	case v.Reserved() && f.found(v, entry): // the reservation did not make this data
		return false
	case !v.Reserved() && wishFor(v, node) == nil:
		// CreateVolume may have returned it before it was taken off the node. A missing
		// PersistentVolume proves nothing if both come from an old backup.
		return false
	}
	return entry.HasData() && entry.Pool == f.Record.Pool.Name
}

// found says whether the data was there before the node made anything for the object, or is
// newer than the object's state. Berth neither formats a reservation nor gives it to a pod. So a
// filesystem on one, or the record that a pod was given the block device, shows that the
// reservation's mark is from an old backup.
func (f Facts) found(v *v1alpha1.Volume, entry *v1alpha1.ReplicaStatus) bool {
	switch {
	case f.Record.Copying || f.blank(v) || v.Spec.Adopted:
		return false
	case v.Reserved() && f.Record.Filesystem != "" && v.Spec.Source == nil:
		return true
	case entry.HasData():
		return entry.Reason == v1alpha1.ReasonFound
	}
	return !f.Made
}

// blank says whether a filesystem should be there and none was ever made. It is false for a raw
// block volume, since no record tells whether a pod wrote to it, and for data with a problem.
func (f Facts) blank(v *v1alpha1.Volume) bool {
	return v.Spec.VolumeMode == v1alpha1.Filesystem && f.Record.Filesystem == "" && f.Record.Problem == "" && !v.Spec.Adopted
}
