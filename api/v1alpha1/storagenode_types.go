package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// StorageNode is what one node has to offer. It bears the Node's name; its status is
// written by that node's agent only, its spec by administrators. The controller deletes
// it when the Node is gone. Deleting it never deletes data.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=sn,categories={berth,storage}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Pools",type=string,JSONPath=`.status.pools[*].name`
// +kubebuilder:printcolumn:name="Total",type=string,JSONPath=`.status.pools[*].total`
// +kubebuilder:printcolumn:name="Largest",type=string,JSONPath=`.status.pools[*].largestVolume`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StorageNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what administrators tell the node's agent.
	// +optional
	Spec StorageNodeSpec `json:"spec,omitempty"`

	// status is the agent's latest report.
	// +optional
	Status StorageNodeStatus `json:"status,omitempty"`
}

// StorageNodeSpec is what administrators tell a node's agent.
type StorageNodeSpec struct {
	// forget names the orphans whose data may be deleted. The agent deletes one only
	// while its report still shows the same one.
	// +optional
	// +listType=map
	// +listMapKey=pool
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Forget []ForgottenOrphan `json:"forget,omitempty"`
}

// ForgottenOrphan names one orphan exactly as its node reports it, so that the word
// for one cannot be taken for another's.
type ForgottenOrphan struct {
	// pool that it is in.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Pool string `json:"pool"`

	// name of the volume or the snapshot.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// size as reported.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Size resource.Quantity `json:"size"`

	// since as reported.
	// +required
	Since metav1.Time `json:"since"`

	// at is when that was said. The word is good for a day: one that comes back with an old
	// backup, or that waited for a pod to end, may be about data that is needed by now.
	// +required
	At metav1.Time `json:"at"`
}

// ForgetValid is how long the word to forget an orphan is good.
const ForgetValid = 24 * time.Hour

// StorageNodeStatus is one atomic report of a node's pools.
type StorageNodeStatus struct {
	// pools are the node's pools that at least one PoolClass selects, or that hold anything
	// of Berth's. If there are more than the list has place for, the condition
	// PoolsLeftOut says so.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Pools []Pool `json:"pools,omitempty"`

	// volumesRevision is the highest resourceVersion among the Volumes that the
	// agent had seen, their deletions included, when it sorted what is in its
	// pools into Volumes, inventory and foreign. What went by that revision and
	// is in none of them takes no room any more.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*$`
	VolumesRevision string `json:"volumesRevision,omitempty"`

	// features are what the node's agent can do that agents could not always do. One that
	// is older than a feature does not list it, and is not asked for it: it would not
	// refuse, but do something else.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	Features []string `json:"features,omitempty"`

	// conditions: Ready is True while the agent can list its pools.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Pool is one pool of a node. It states total and foreign bytes, never free
// ones: what Berth's own volumes take is known from the Volumes, and a free
// figure would race with every volume being created.
type Pool struct {
	// name of the pool on its node: a volume group (vg0), a thin pool in one
	// (vg0/thin), or a disk (disk:nvme-eui.0025385b71b0a1c2).
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// provisioner that serves the pool.
	// +required
	Provisioner ProvisionerType `json:"provisioner"`

	// total is the size of the pool.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Total resource.Quantity `json:"total"`

	// foreign is what others than Berth use of it, and what Berth uses and
	// inventory has no place for.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Foreign resource.Quantity `json:"foreign"`

	// filled is how much of a thin pool holds data, in steps of a hundredth of it.
	// Total and foreign count what is promised.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Filled *resource.Quantity `json:"filled,omitempty"`

	// metadataFilledPercent is how full a thin pool's metadata is.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MetadataFilledPercent int32 `json:"metadataFilledPercent,omitempty"`

	// media of a disk.
	// +optional
	Media Media `json:"media,omitempty"`

	// allocationUnit is what sizes are rounded up to: an extent; the whole of a disk.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	AllocationUnit resource.Quantity `json:"allocationUnit"`

	// largestVolume is the largest volume that could be created when the report
	// was made. For display and coarse filtering; not for accounting.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	LargestVolume resource.Quantity `json:"largestVolume"`

	// inventory is what is Berth's in the pool and is no replica of a Volume that
	// the agent knows: inline volumes, snapshots, and volumes whose Volume is gone. It
	// is part of neither foreign nor any Volume.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Inventory []InventoryItem `json:"inventory,omitempty"`

	// classes are the PoolClasses that this pool serves on this node.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=253
	Classes []string `json:"classes,omitempty"`

	// health is Healthy, or why nothing new should be placed here.
	// +required
	Health PoolHealth `json:"health"`

	// message explains a pool that is not healthy.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// lastChange is what Berth did to the pool last because a PoolClass asks for it.
	// +optional
	LastChange *PoolChange `json:"lastChange,omitempty"`
}

// InventoryItem is something of Berth's in a pool that has no Volume object.
//
// +kubebuilder:validation:XValidation:rule="[has(self.volume), has(self.inline), has(self.snapshot)].filter(x, x).size() == 1",message="an item of the inventory is one of volume, inline and snapshot"
type InventoryItem struct {
	// volume is the name of the Volume that it was made for.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Volume string `json:"volume,omitempty"`

	// inline says whose inline volume it is.
	// +optional
	Inline *InlineReference `json:"inline,omitempty"`

	// snapshot is the id of a snapshot.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Snapshot string `json:"snapshot,omitempty"`

	// allocated is how many bytes it takes of the pool.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Allocated resource.Quantity `json:"allocated"`

	// orphan is set for what no object accounts for, as the API server itself said
	// when it was asked. It is kept.
	// +optional
	Orphan *Orphan `json:"orphan,omitempty"`
}

// Orphan is what is known of data that no object accounts for.
type Orphan struct {
	// since is when it was first reported, by the node's clock.
	// +required
	Since metav1.Time `json:"since"`

	// reason is NoObject or NotPlaced.
	// +required
	Reason OrphanReason `json:"reason"`

	// message says why it is an orphan, or why it could not be deleted.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// deadline is when it is deleted if nobody adopts it; absent if it is kept for ever.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`

	// size in bytes of the volume, or of the volume that a snapshot is of.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Size resource.Quantity `json:"size"`

	// filesystem that was made on it; empty means that none ever was.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Filesystem string `json:"filesystem,omitempty"`

	// source is the name of the snapshot or the volume that it began as a copy of.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Source string `json:"source,omitempty"`
}

// OrphanReason is why data is an orphan.
//
// +kubebuilder:validation:Enum=NoObject;NotPlaced
type OrphanReason string

const (
	// OrphanNoObject means that there is no Volume, or Snapshot, of its name.
	OrphanNoObject OrphanReason = "NoObject"
	// OrphanNotPlaced means that there is one, and it does not know that the node has
	// anything of it.
	OrphanNotPlaced OrphanReason = "NotPlaced"
)

// InlineReference names an inline volume: one that a pod's spec describes, and
// that lives and dies with the pod.
type InlineReference struct {
	// podUID of the pod.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	PodUID types.UID `json:"podUID"`

	// name of the volume in the pod's spec.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
}

// PoolHealth is the state of a pool.
//
// +kubebuilder:validation:Enum=Healthy;Degraded;Missing
type PoolHealth string

const (
	// PoolHealthy means that volumes can be created.
	PoolHealthy PoolHealth = "Healthy"
	// PoolDegraded means that existing volumes work and nothing new is placed:
	// a physical volume is missing, or the pool is read-only.
	PoolDegraded PoolHealth = "Degraded"
	// PoolMissing means that a pool which holds volumes is not there.
	PoolMissing PoolHealth = "Missing"
)

// StorageNodeList is a list of StorageNodes.
//
// +kubebuilder:object:root=true
type StorageNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StorageNode `json:"items"`
}
