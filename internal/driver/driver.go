package driver

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

// Driver is a CSI driver that a process of Berth serves. The zero value serves nothing.
type Driver struct {
	// Name by which Kubernetes knows the driver: that of its CSIDriver object.
	Name string
	// AccessModes in which its volumes can be used, if the rest of a request fits.
	AccessModes []corev1.PersistentVolumeAccessMode
	// Why is the reason why other access modes are refused, for users: a clause.
	Why string
	// Inline says whether pods may describe volumes in their own spec.
	Inline bool
	// Kind of the driver's volumes where nothing more is known of one.
	Kind ownership.Kind
	// Capacity says whether the room for new volumes differs between nodes, and is published.
	Capacity bool
	// Pools says whether its volumes come from the pools of nodes. The controllers of that one driver look
	// after pools, the reports of nodes, and what becomes of claims whose volume is lost.
	Pools bool
	// Controllers is the name by which the driver's controllers elect a leader and manage fields.
	Controllers string
}

// Local is the driver of volumes that live on a node's own disks.
func Local() Driver {
	return Driver{
		Name:        v1alpha1.LocalDriverName,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod},
		// Also the mode for readers on several nodes is refused: a pod elsewhere would wait for ever.
		Why: "the volume lives on one node (use ReadWriteOnce or ReadWriteOncePod; " +
			"pods of that node share a ReadWriteOnce volume, as readers with readOnly: true)",
		Inline: true, Capacity: true, Pools: true, Controllers: "berth-controller",
	}
}

// Disk is the driver of shared disks: each is attached to several nodes, of which one at a time writes, or several
// write a block device at once.
func Disk() Driver {
	return Driver{
		Name:        v1alpha1.DiskDriverName,
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteOncePod, corev1.ReadWriteMany},
		Why: "of the nodes that the disk is attached to, one at a time may use it, or all may write a block device " +
			"(use ReadWriteOnce or ReadWriteOncePod, or ReadWriteMany with volumeMode Block)",
		Kind:        ownership.Attachments,
		Controllers: "berth-disk-controller",
	}
}

// Named returns the driver that a flag names: local or disk.
func Named(short string) (Driver, error) {
	switch short {
	case "local":
		return Local(), nil
	case "disk":
		return Disk(), nil
	}
	return Driver{}, fmt.Errorf("unknown driver %q: use local or disk", short)
}

// Epochs says whether the driver's volumes may have several replicas, and so a record of ownership that
// controllers oversee.
func (d Driver) Epochs() bool { return d.Kind.Traits().Owned }

// Supports returns an empty string for an access mode in which the driver's volumes can be
// used, and otherwise says for users why it is refused.
func (d Driver) Supports(mode corev1.PersistentVolumeAccessMode) (refusal string) {
	if slices.Contains(d.AccessModes, mode) {
		return ""
	}
	return d.Refuses(string(mode))
}

// Refuses says for users that an access mode, by the name that its caller used, is refused.
func (d Driver) Refuses(mode string) string {
	return fmt.Sprintf("access mode %s is not supported: %s", mode, d.Why)
}

// Provisions says whether volumes of the StorageClass are the driver's.
func (d Driver) Provisions(c *storagev1.StorageClass) bool {
	return d.Name != "" && c.Provisioner == d.Name
}

// Handle returns the volume that a PersistentVolume stands for; empty if it is another driver's.
func (d Driver) Handle(pv *corev1.PersistentVolume) string {
	if pv.Spec.CSI == nil || d.Name == "" || pv.Spec.CSI.Driver != d.Name {
		return ""
	}
	return pv.Spec.CSI.VolumeHandle
}

// Describes says whether a volume in a pod's spec is an inline volume of the driver.
func (d Driver) Describes(v *corev1.Volume) bool {
	return d.Inline && v.CSI != nil && d.Name != "" && v.CSI.Driver == d.Name
}

// capacityDriverLabel is the label by which people list capacities, no matter who published them.
const capacityDriverLabel = "csi.storage.k8s.io/drivername"

// CapacityLabels are the labels of the CSIStorageCapacity objects that the driver's agent on a
// node publishes, and of no others.
func (d Driver) CapacityLabels(node string) map[string]string {
	return map[string]string{v1alpha1.CapacityLabel: v1alpha1.CapacityLabelValue(node), capacityDriverLabel: d.Name}
}

// Took says whether a driver's name, in a VolumeSnapshotContent, is this driver's.
func (d Driver) Took(name string) bool { return d.Name != "" && name == d.Name }

// Owns says whether a Volume or a Snapshot is the driver's.
func (d Driver) Owns(o Object) bool { return d.Name != "" && o.DriverName() == d.Name }

// Object is a Volume or a Snapshot.
type Object interface{ DriverName() string }

var (
	_ Object = (*v1alpha1.Volume)(nil)
	_ Object = (*v1alpha1.Snapshot)(nil)
)

// Segments is the CSI topology of a volume that can be used from several nodes: the label that moves. It is nil
// for other volumes, which have the topology of their node.
func (d Driver) Segments(volume string) map[string]string {
	if !d.Epochs() {
		return nil
	}
	return map[string]string{v1alpha1.VolumeLabelPrefix + volume: v1alpha1.VolumeLabelValue}
}

// Affinity is the node affinity of the PersistentVolume of such a volume, as the external-provisioner makes it
// of Segments, and nil for others.
func (d Driver) Affinity(volume string) *corev1.VolumeNodeAffinity {
	var terms []corev1.NodeSelectorTerm
	for key, value := range d.Segments(volume) {
		terms = append(terms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}},
		}})
	}
	if terms == nil {
		return nil
	}
	return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: terms}}
}
