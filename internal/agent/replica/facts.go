package replica

import (
	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Facts are what a node knows of one volume, beside what its entry says.
type Facts struct {
	// Record is the provisioner's; nil when it says that it has none. A provisioner that
	// could not be asked must not be taken for one that has none.
	Record *provision.Volume
	// Made is whether this process saw that the node had nothing of the volume's name
	// before it made what is there.
	Made bool
	// Lost is whether no record proves nothing: the pool that the entry names is not in the
	// node's report, and nobody has said that it is not to be waited for.
	Lost bool
}

// removable says whether what is there is proved to be the data of this very object, or to
// be nobody's data. A name proves nothing: the object may come from an old backup of the
// API server, and the data from what happened after it.
func (f Facts) removable(v *v1alpha1.Volume, node string) bool {
	entry := v.Entry(node)
	switch {
	case f.Made, f.Record.Copying, f.blank(v): // nobody could use it yet
		return true
	case v.Reserved() && f.found(v, entry): // nobody was told of what was made, but this was not
		return false
	case !v.Reserved() && wishFor(v, node) == nil:
		// CreateVolume may have returned it before it was taken off the node. That no
		// PersistentVolume refers to it is so as well if both come from an old backup.
		return false
	}
	return entry.HasData() && entry.Pool == f.Record.Pool.Name
}

// found says whether the data was there before the object had anything of this node, or came
// after it: a reservation is not formatted, so that a filesystem on one, or the record that a
// pod was given the block device, shows that the mark is from an old backup.
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

// blank says whether no filesystem was ever made where there should be one. Whether anybody
// has written to a raw block volume no record tells, nor does one of what cannot be read.
func (f Facts) blank(v *v1alpha1.Volume) bool {
	return v.Spec.VolumeMode == v1alpha1.Filesystem && f.Record.Filesystem == "" && f.Record.Problem == "" && !v.Spec.Adopted
}
