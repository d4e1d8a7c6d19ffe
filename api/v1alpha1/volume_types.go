package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Volume is one volume: its desired state, the nodes of its replicas, and which of
// them may write.
//
// ---
// Rules that compare with the old object stand here at the root. The API server
// does not evaluate a rule on a field when the field, or a parent of it, was or
// becomes absent: {"status":null} would get past it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bvol,categories={berth,storage}
// +kubebuilder:selectablefield:JSONPath=`.spec.driver`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.replicas[0].state`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.spec.capacity`
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.poolClass`
// +kubebuilder:printcolumn:name="Node",type=string,JSONPath=`.spec.replicas[0].node`
// +kubebuilder:printcolumn:name="Namespace",type=string,JSONPath=`.spec.claimRef.namespace`
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.spec.claimRef.name`
// +kubebuilder:printcolumn:name="Primary",type=string,priority=1,JSONPath=`.status.ownership.primary.node`
// +kubebuilder:printcolumn:name="Phase",type=string,priority=1,JSONPath=`.status.ownership.primary.phase`
// +kubebuilder:printcolumn:name="Waiting",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Waiting")].message`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.replicas[0].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^(pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|vol-[a-z2-7]{32})$')",message="metadata.name must be pvc-<uid>, or vol- and 32 characters of base32"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.spec.capacity)).compareTo(quantity(string(oldSelf.spec.capacity))) >= 0 || !has(self.status) || !has(self.status.replicas) || self.status.replicas.all(r, !has(r.capacity) || quantity(string(r.capacity)).compareTo(quantity(string(self.spec.capacity))) <= 0)",message="spec.capacity cannot shrink below the capacity of a replica"
// +kubebuilder:validation:XValidation:rule="!oldSelf.?status.ownership.hasValue() || self.?status.ownership.hasValue()",message="status.ownership cannot be removed"
// +kubebuilder:validation:XValidation:rule="!self.?status.ownership.writers.hasValue() || self.spec.sharing == 'Shared'",message="status.ownership.writers is for volumes with sharing Shared"
// +kubebuilder:validation:XValidation:rule="!self.?status.ownership.hasValue() || has(self.spec.replication.kind)",message="status.ownership is for volumes with a kind of replication"
// +kubebuilder:validation:XValidation:rule="!self.?status.ownership.hasValue() || !oldSelf.?status.ownership.hasValue() || self.status.ownership.epoch != oldSelf.status.ownership.epoch || (has(self.status.ownership.recoveryPoint) ? [self.status.ownership.recoveryPoint] : []) == (has(oldSelf.status.ownership.recoveryPoint) ? [oldSelf.status.ownership.recoveryPoint] : []) && (self.status.ownership.primary.phase != 'Fenced' || oldSelf.status.ownership.primary.phase == 'Fenced') || self.status.ownership.primary.phase == 'Released' && oldSelf.status.ownership.primary.phase != 'Released' || has(self.spec.replication.failover) && has(self.spec.replication.failover.automatic) && self.spec.replication.failover.automatic || (has(self.status.ownership.approved) ? [dyn(self.status.ownership.approved)] : []) == (has(self.status.ownership.recoveryPoint) ? [dyn(self.status.ownership.recoveryPoint)] : [])",message="without automatic failover a volume falls back only to the approved snapshot"
// +kubebuilder:validation:XValidation:rule="!self.?status.ownership.hasValue() || !oldSelf.?status.ownership.hasValue() || !has(self.spec.replication.attachments) || self.status.ownership.epoch != oldSelf.status.ownership.epoch || size((has(self.status.ownership.replicas) ? self.status.ownership.replicas : [])) <= size((has(oldSelf.status.ownership.replicas) ? oldSelf.status.ownership.replicas : [])) || size(self.status.ownership.replicas) <= self.spec.replication.attachments.maxShares",message="a shared disk has no more attachments than shares"
// +kubebuilder:validation:XValidation:rule="!self.?status.ownership.hasValue() || !has(oldSelf.spec.replicas) || oldSelf.spec.replicas.all(o, has(self.spec.replicas) && self.spec.replicas.exists(r, r.node == o.node) || (has(self.status.ownership.replicas) ? self.status.ownership.replicas : []).all(r, r.node != o.node || r.state == 'Gone'))",message="a node leaves spec.replicas only when its replica is Gone in status.ownership"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.replicas) || oldSelf.status.replicas.all(o, o.state == 'Gone' || has(self.status) && has(self.status.replicas) && self.status.replicas.exists(n, n.node == o.node))",message="an entry of status.replicas leaves only from state Gone"
type Volume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the volume.
	// +required
	Spec VolumeSpec `json:"spec"`
	// status is the observed state of the volume.
	// +optional
	Status VolumeStatus `json:"status,omitempty"`
}

// VolumeSpec is the desired state of a volume.
//
// +kubebuilder:validation:XValidation:rule="quantity(string(self.capacity)).isInteger() && quantity(string(self.capacity)).isGreaterThan(quantity('0'))",message="capacity must be a positive whole number of bytes"
// +kubebuilder:validation:XValidation:rule="self.volumeMode == oldSelf.volumeMode && self.poolClass == oldSelf.poolClass && self.sharing == oldSelf.sharing && self.placement == oldSelf.placement",message="volumeMode, poolClass, sharing and placement are immutable"
// +kubebuilder:validation:XValidation:rule="has(self.driver) == has(oldSelf.driver) && (!has(self.driver) || self.driver == oldSelf.driver)",message="driver is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.replication.kind) == has(oldSelf.replication.kind) && (!has(self.replication.kind) || self.replication.kind == oldSelf.replication.kind)",message="replication.kind is immutable"
// +kubebuilder:validation:XValidation:rule="!oldSelf.replication.?attachments.disk.hasValue() || self.replication.?attachments.disk == oldSelf.replication.?attachments.disk",message="replication.attachments.disk is immutable once it is set"
// +kubebuilder:validation:XValidation:rule="self.replication.?attachments.blank.orValue(false) == oldSelf.replication.?attachments.blank.orValue(false)",message="replication.attachments.blank is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.fsType) == has(oldSelf.fsType) && (!has(self.fsType) || self.fsType == oldSelf.fsType)",message="fsType is immutable"
// +kubebuilder:validation:XValidation:rule="has(self.mkfsOptions) == has(oldSelf.mkfsOptions) && (!has(self.mkfsOptions) || self.mkfsOptions == oldSelf.mkfsOptions)",message="mkfsOptions is immutable"
// +kubebuilder:validation:XValidation:rule="!has(self.mkfsOptions) || self.volumeMode == 'Filesystem' && (!has(self.fsType) || !(self.fsType in ['zfs', 'btrfs'])) && !has(self.source)",message="mkfsOptions is for a filesystem that mkfs makes: not for volumeMode Block, not for fsType zfs or btrfs, and not for a copy"
// +kubebuilder:validation:XValidation:rule="has(self.source) == has(oldSelf.source) && (!has(self.source) || self.source == oldSelf.source)",message="source is immutable"
// +kubebuilder:validation:XValidation:rule="self.?adopted.orValue(false) == oldSelf.?adopted.orValue(false)",message="adopted is immutable"
// +kubebuilder:validation:XValidation:rule="self.sharing == 'Exclusive' || self.volumeMode == 'Block' && has(self.replication.kind) && self.replication.kind == 'Attachments' && (self.replication.attachments.?persistent.orValue(false) || !has(self.replication.attachments.disk))",message="sharing Shared is for raw disks (volumeMode Block, kind Attachments) whose reservations persist"
// +kubebuilder:validation:XValidation:rule="has(self.fsType) == (self.volumeMode == 'Filesystem')",message="fsType is for volumeMode Filesystem, and required there"
// +kubebuilder:validation:XValidation:rule="!has(self.fsType) || self.fsType != 'zfs' || !has(self.replicas) || self.replicas.all(r, r.pool.startsWith('zfs:'))",message="fsType zfs is for pools of ZFS"
// +kubebuilder:validation:XValidation:rule="!has(self.replicas) || self.replicas.all(r, r.pool.startsWith('btrfs:') == (has(self.fsType) && self.fsType == 'btrfs'))",message="fsType btrfs is for pools of btrfs, which have nothing else"
type VolumeSpec struct {
	// driver is the name of the CSI driver that serves the volume. Without it the volume is
	// local.berth.dev's. A driver never touches the volumes of another one.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Driver string `json:"driver,omitempty"`

	// capacity is the requested size in bytes. A replica may be a little larger, because of
	// the allocation unit of its pool. capacity may shrink, but not below the largest replica,
	// so that an expansion without room can be given up; data never shrinks.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Capacity resource.Quantity `json:"capacity"`

	// volumeMode is Filesystem or Block.
	// +required
	VolumeMode VolumeMode `json:"volumeMode"`

	// fsType of a Filesystem volume.
	// +optional
	FSType FSType `json:"fsType,omitempty"`

	// mkfsOptions are the command-line options of mkfs for the filesystem. Berth accepts only
	// options that it knows to be safe. They apply once: nothing changes them afterwards.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^-[A-Za-z]( [A-Za-z0-9_=,^-]+)*$`
	MkfsOptions string `json:"mkfsOptions,omitempty"`

	// poolClass that the replicas come from.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PoolClass string `json:"poolClass"`

	// claimRef names the claim that the volume was made for, if there is one.
	// +optional
	ClaimRef *ClaimReference `json:"claimRef,omitempty"`

	// source names the snapshot or volume that this volume begins as a copy of. Without it
	// the volume begins blank.
	// +optional
	Source *VolumeSource `json:"source,omitempty"`

	// adopted says that the data is older than this object. No node makes the volume or
	// formats it: an empty volume must not take the place of missing data.
	// +optional
	Adopted bool `json:"adopted,omitempty"`

	// sharing says how many nodes may write at once.
	// +required
	// +kubebuilder:default=Exclusive
	Sharing Sharing `json:"sharing"`

	// placement says how the PersistentVolume finds its node.
	// +required
	// +kubebuilder:default=Node
	Placement Placement `json:"placement"`

	// replication says how many replicas there should be.
	// +required
	// +kubebuilder:default={factor: 1}
	Replication Replication `json:"replication"`

	// replicas are the nodes that should hold a replica, each with the pool to take it from.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=8
	Replicas []ReplicaSpec `json:"replicas,omitempty"`
}

// VolumeSource names the snapshot or volume that a volume begins as a copy of.
//
// +structType=atomic
// +kubebuilder:validation:XValidation:rule="has(self.snapshot) != has(self.volume)",message="a source is either a snapshot or a volume"
type VolumeSource struct {
	// snapshot is the name of a Snapshot.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^snap-([0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[a-z2-7]{32})$`
	Snapshot string `json:"snapshot,omitempty"`

	// volume is the name of a Volume.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^(pvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|vol-[a-z2-7]{32})$`
	Volume string `json:"volume,omitempty"`
}

// VolumeMode says what a pod sees: a mounted filesystem or a block device.
//
// +kubebuilder:validation:Enum=Filesystem;Block
type VolumeMode string

// The two volume modes.
const (
	Filesystem VolumeMode = "Filesystem"
	Block      VolumeMode = "Block"
)

// FSType is a filesystem that Berth makes, grows and mounts. zfs is a dataset of ZFS, and
// only for classes with provisioner ZFS; btrfs is a subvolume, and only for classes with
// provisioner Btrfs, which have nothing else.
//
// +kubebuilder:validation:Enum=ext4;xfs;zfs;btrfs
type FSType string

// The supported filesystems.
const (
	Ext4 FSType = "ext4"
	XFS  FSType = "xfs"
	// Dataset is a filesystem of ZFS itself.
	Dataset FSType = "zfs"
	// Subvolume is a filesystem of btrfs itself.
	Subvolume FSType = "btrfs"
)

// Sharing says how many nodes may write a volume at once.
//
// +kubebuilder:validation:Enum=Exclusive;Shared
type Sharing string

const (
	// Exclusive volumes have at most one writing node.
	Exclusive Sharing = "Exclusive"
	// Shared volumes may have several writing nodes. The users of the block device
	// coordinate their writes themselves.
	Shared Sharing = "Shared"
)

// Placement is the form of the PersistentVolume's node affinity, which can
// never be changed once the PersistentVolume exists.
//
// +kubebuilder:validation:Enum=Node;Volume;Group
type Placement string

const (
	// PlacementNode names the node. For one-copy volumes that never move.
	PlacementNode Placement = "Node"
	// PlacementVolume names a label that belongs to the volume. The controller moves
	// it between Nodes.
	PlacementVolume Placement = "Volume"
	// PlacementGroup names the label of a replica group.
	PlacementGroup Placement = "Group"
)

// ClaimReference names a PersistentVolumeClaim.
//
// +structType=atomic
type ClaimReference struct {
	// namespace of the claim.
	// +required
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`
	// name of the claim.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
	// uid of the claim; empty where only its name is known.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=64
	UID types.UID `json:"uid,omitempty"`
}

// ReplicaSpec asks for a replica on a node.
//
// +kubebuilder:validation:XValidation:rule="self.pool == oldSelf.pool",message="pool is immutable: remove the replica and add it again"
type ReplicaSpec struct {
	// node that should hold the replica.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// pool of that node to take the replica from.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Pool string `json:"pool"`
}

// VolumeList is a list of Volumes.
//
// +kubebuilder:object:root=true
type VolumeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Volume `json:"items"`
}
