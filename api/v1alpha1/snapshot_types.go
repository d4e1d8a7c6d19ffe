package v1alpha1

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Snapshot is the data of a volume at one moment. It does not need its volume, and
// volumes that were made from it do not need it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bsnap,categories={berth,storage}
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.spec.volume`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.replicas[0].state`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.status.replicas[0].restoreSize`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.replicas[0].node`
// +kubebuilder:printcolumn:name="Taken",type=date,JSONPath=`.status.replicas[0].taken`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.replicas[0].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^snap-([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z2-7]{32})$')",message="metadata.name must be snap-<uid>, or snap- and 32 characters of base32"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.replicas) || oldSelf.status.replicas.all(o, o.state == 'Gone' || has(self.status) && has(self.status.replicas) && self.status.replicas.exists(n, n.node == o.node))",message="an entry of status.replicas leaves only from state Gone"
type Snapshot struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the volume of the snapshot, and the nodes that should hold it.
	// +required
	Spec SnapshotSpec `json:"spec"`
	// status is the observed state of the snapshot.
	// +optional
	Status SnapshotStatus `json:"status,omitempty"`
}

// SnapshotSpec names the volume of a snapshot, and the nodes that should hold it.
//
// +kubebuilder:validation:XValidation:rule="self.volume == oldSelf.volume && self.volumeMode == oldSelf.volumeMode && self.poolClass == oldSelf.poolClass",message="volume, volumeMode and poolClass are immutable"
// +kubebuilder:validation:XValidation:rule="has(self.driver) == has(oldSelf.driver) && (!has(self.driver) || self.driver == oldSelf.driver)",message="driver is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.fsType) == has(oldSelf.fsType) && (!has(self.fsType) || self.fsType == oldSelf.fsType)",message="fsType is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.fsType) == (self.volumeMode == 'Filesystem')",message="fsType is for volumeMode Filesystem, and required there"
// +kubebuilder:validation:XValidation:rule="self.?adopted.orValue(false) == oldSelf.?adopted.orValue(false)",message="adopted is immutable"
type SnapshotSpec struct {
	// driver is the name of the CSI driver that serves the snapshot: that of its volume. Without
	// it the snapshot is local.berth.dev's.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Driver string `json:"driver,omitempty"`

	// volume is the name of the Volume that the snapshot is taken of.
	// +required
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|vol-[a-z2-7]{32})$`
	Volume string `json:"volume"`

	// volumeMode of the volume. The spec repeats it because the volume may be gone when the
	// first volume is made from the snapshot: a copy has the same bytes, so the same mode.
	// +required
	VolumeMode VolumeMode `json:"volumeMode"`

	// fsType of a Filesystem volume.
	// +optional
	FSType FSType `json:"fsType,omitempty"`

	// poolClass of the volume. No snapshot takes the space that the class keeps spare.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PoolClass string `json:"poolClass"`

	// adopted says that the snapshot is older than this object. No node takes it: a
	// snapshot of the volume's current data must not take the place of a missing one.
	// +optional
	Adopted bool `json:"adopted,omitempty"`

	// replicas are the nodes that should hold the snapshot, each with the volume's pool there.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=8
	Replicas []ReplicaSpec `json:"replicas,omitempty"`
}

// SnapshotStatus is the observed state of a snapshot.
type SnapshotStatus struct {
	// replicas are the reports of the nodes, each written by its own agent.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=8
	Replicas []SnapshotReplica `json:"replicas,omitempty"`
}

// SnapshotState is the state of a snapshot on one node.
//
// +kubebuilder:validation:Enum=Copying;Ready;Failed;Gone
type SnapshotState string

const (
	// SnapshotCopying means that the snapshot was taken, and the node is still copying its data.
	SnapshotCopying SnapshotState = "Copying"
	// SnapshotReady means that volumes can be made from the snapshot.
	SnapshotReady SnapshotState = "Ready"
	// SnapshotFailed means that the snapshot could not be taken, or is broken; reason and
	// message say why.
	SnapshotFailed SnapshotState = "Failed"
	// SnapshotGone means that nothing of it is on the node, and the entry may be
	// dropped.
	SnapshotGone SnapshotState = "Gone"
)

// SnapshotReplica is one node's report on a snapshot.
//
// +kubebuilder:validation:XValidation:rule="!(self.state in ['Copying', 'Ready']) || has(self.taken) && has(self.restoreSize)",message="a snapshot that was taken reports when, and its size"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.taken) || !has(self.taken) || self.taken == oldSelf.taken && self.restoreSize == oldSelf.restoreSize",message="a snapshot is taken once"
type SnapshotReplica struct {
	// node that reports.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`

	// pool that holds the snapshot, or should have held it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Pool string `json:"pool,omitempty"`

	// state of the snapshot on the node.
	// +required
	State SnapshotState `json:"state"`

	// taken is when the snapshot was taken, by the node's clock.
	// +optional
	Taken *metav1.Time `json:"taken,omitempty"`

	// restoreSize is the size in bytes of the volume when the snapshot was taken. A volume
	// that is made from the snapshot has at least this size.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	RestoreSize *resource.Quantity `json:"restoreSize,omitempty"`

	// allocated is how many bytes of its pool the snapshot takes.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Allocated *resource.Quantity `json:"allocated,omitempty"`

	// reason is a CamelCase word for the state, from the same list as a Volume replica's reason.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message is for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// Wish returns what the spec asks of a node, or nil. It points into the Snapshot.
func (s *Snapshot) Wish(node string) *ReplicaSpec { return wish(s.Spec.Replicas, node) }

// DriverName returns the name of the CSI driver that serves the snapshot.
func (s *Snapshot) DriverName() string { return cmp.Or(s.Spec.Driver, LocalDriverName) }

// Entry returns a node's report on the snapshot, or nil. It points into the Snapshot.
func (s *Snapshot) Entry(node string) *SnapshotReplica {
	for i := range s.Status.Replicas {
		if s.Status.Replicas[i].Node == node {
			return &s.Status.Replicas[i]
		}
	}
	return nil
}

// SnapshotList is a list of Snapshots.
//
// +kubebuilder:object:root=true
type SnapshotList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Snapshot `json:"items"`
}
