package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// StorageNode describes the pools of one node. It has the name of the Node. Only that node's
// agent writes its status; administrators write its spec. The controller deletes
// it when the Node is gone. Deleting it never deletes data.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bsn,categories={berth,storage}
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Pools",type=string,JSONPath=`.status.summary.pools`
// +kubebuilder:printcolumn:name="Largest",type=string,JSONPath=`.status.summary.largestVolume`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StorageNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec holds the orders of administrators to the node's agent.
	// +optional
	Spec StorageNodeSpec `json:"spec,omitempty"`

	// status is the agent's latest report.
	// +optional
	Status StorageNodeStatus `json:"status,omitempty"`
}

// StorageNodeSpec holds the orders of administrators to a node's agent.
type StorageNodeSpec struct {
	// forget names the orphans whose data the agent may delete. It deletes one only while
	// its report still shows exactly that orphan.
	// +optional
	// +listType=map
	// +listMapKey=pool
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Forget []ForgottenOrphan `json:"forget,omitempty"`
}

// ForgottenOrphan names one orphan exactly as its node reports it, so that an order about
// one orphan cannot apply to another.
type ForgottenOrphan struct {
	// pool that the orphan is in.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Pool string `json:"pool"`

	// name of the volume or the snapshot.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`

	// size in bytes, as reported.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Size resource.Quantity `json:"size"`

	// since as reported.
	// +required
	Since metav1.Time `json:"since"`

	// at is when the administrator gave the order. It is valid for a day: an order that was
	// restored from an old backup, or that waited for a pod to end, may name data that is
	// needed by now.
	// +required
	At metav1.Time `json:"at"`
}

// ForgetValid is how long an order to forget an orphan is valid.
const ForgetValid = 24 * time.Hour

// StorageNodeStatus is one atomic report of a node's pools.
type StorageNodeStatus struct {
	// pools are the node's pools that at least one PoolClass selects, or that hold data of
	// Berth's. If they do not all fit into the list, the condition PoolsLeftOut says so.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=256
	Pools []Pool `json:"pools,omitempty"`

	// summary is what kubectl shows of all pools in its columns.
	// +optional
	Summary *StorageNodeSummary `json:"summary,omitempty"`

	// volumesRevision is the highest resourceVersion of a Volume, or of a Volume's deletion,
	// that the agent had seen when it divided the contents of its pools into Volumes,
	// inventory and foreign. A Volume that was gone by that revision and is in none of the
	// three takes no space any more.
	// +optional
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*$`
	VolumesRevision string `json:"volumesRevision,omitempty"`

	// features are the abilities of the node's agent that older agents lack. An older agent
	// does not list a feature, and Berth does not ask it for that: the agent would not refuse,
	// but do something else.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=63
	Features []string `json:"features,omitempty"`

	// diskOrders are what the node asks of the controllers about shared disks that they attach, as
	// those of a cloud. The agent of shared disks places them, and the controllers answer.
	// +optional
	// +listType=map
	// +listMapKey=handle
	// +kubebuilder:validation:MaxItems=128
	DiskOrders []DiskOrder `json:"diskOrders,omitempty"`

	// conditions: Ready is True while the agent can list its pools.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// StorageNodeSummary puts a node's pools into a line. A column of kubectl cannot: of a list it
// prints the first element only. Nothing decides by it.
type StorageNodeSummary struct {
	// pools are the first pools by name, each with its size or, if it is not Healthy, its
	// health; and how many more there are.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Pools string `json:"pools"`

	// largestVolume that one of the pools could take.
	// +required
	// +kubebuilder:validation:MaxLength=32
	LargestVolume string `json:"largestVolume"`
}

// Pool is one pool of a node. It states total and foreign bytes, never free
// ones: the Volumes say how much Berth's own volumes take, and a free figure
// would race with every volume being created.
type Pool struct {
	// name of the pool on its node: a volume group (vg0), a thin pool in one
	// (vg0/thin), or a disk (disk:nvme-eui.0025385b71b0a1c2).
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// provisioner that serves the pool.
	// +required
	Provisioner ProvisionerType `json:"provisioner"`

	// total is the size of the pool in bytes.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Total resource.Quantity `json:"total"`

	// foreign is how many bytes others than Berth use, and how many Berth uses for
	// items that do not fit into inventory.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Foreign resource.Quantity `json:"foreign"`

	// filled is how many bytes of a thin pool hold data, in steps of one percent of its size.
	// total and foreign count promised bytes.
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

	// allocationUnit is the unit in bytes that sizes are rounded up to: an extent, or the
	// whole of a disk.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	AllocationUnit resource.Quantity `json:"allocationUnit"`

	// largestVolume is the size in bytes of the largest volume that could be created when
	// the agent made the report. It is for display and coarse filtering, not for accounting.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	LargestVolume resource.Quantity `json:"largestVolume"`

	// inventory lists the things of Berth's in the pool that are no replica of a Volume that
	// the agent knows: inline volumes, snapshots, and volumes whose Volume is gone. Neither
	// foreign nor any Volume counts them.
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

	// health is Healthy, or says why no new volume should be placed here.
	// +required
	Health PoolHealth `json:"health"`

	// message explains a pool that is not healthy.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// lastChange is the latest change that Berth made to the pool because a PoolClass asks for it.
	// +optional
	LastChange *PoolChange `json:"lastChange,omitempty"`
}

// InventoryItem is an inline volume, a snapshot, or a volume without a Volume object in a pool.
//
// +kubebuilder:validation:XValidation:rule="[has(self.volume), has(self.inline), has(self.snapshot)].filter(x, x).size() == 1",message="an item of the inventory is one of volume, inline and snapshot"
type InventoryItem struct {
	// volume is the name of the Volume that the item was made for.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Volume string `json:"volume,omitempty"`

	// inline names the inline volume, and its pod.
	// +optional
	Inline *InlineReference `json:"inline,omitempty"`

	// snapshot is the id of a snapshot.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Snapshot string `json:"snapshot,omitempty"`

	// allocated is how many bytes of the pool the item takes.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Allocated resource.Quantity `json:"allocated"`

	// orphan is set if no object accounts for the item, which the agent has asked the API
	// server itself. Berth keeps the item, until its deadline if it has one.
	// +optional
	Orphan *Orphan `json:"orphan,omitempty"`
}

// Orphan describes data that no object accounts for.
type Orphan struct {
	// since is when the agent first reported the orphan, by the node's clock.
	// +required
	Since metav1.Time `json:"since"`

	// reason is NoObject or NotPlaced.
	// +required
	Reason OrphanReason `json:"reason"`

	// message says why the data is an orphan, or why the agent could not delete it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`

	// deadline is when the agent deletes the data unless an administrator adopts it; absent
	// if the agent keeps it for ever.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`

	// size in bytes of the volume, or of the volume that a snapshot was taken of.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Size resource.Quantity `json:"size"`

	// filesystem that was made on the volume; empty means that none ever was.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Filesystem string `json:"filesystem,omitempty"`

	// claim that the volume was made for, as NAMESPACE/NAME, by the record beside the data;
	// absent if the record does not say. It is a hint for administrators, and proves nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=317
	Claim string `json:"claim,omitempty"`

	// source is the name of the snapshot or the volume that the orphan began as a copy of.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Source string `json:"source,omitempty"`
}

// OrphanReason says why data is an orphan.
//
// +kubebuilder:validation:Enum=NoObject;NotPlaced
type OrphanReason string

const (
	// OrphanNoObject means that there is no Volume, or Snapshot, of its name.
	OrphanNoObject OrphanReason = "NoObject"
	// OrphanNotPlaced means that there is such an object, but it does not name the node as
	// a place of its data.
	OrphanNotPlaced OrphanReason = "NotPlaced"
)

// InlineReference names an inline volume: a pod's spec describes it, and it lives and
// dies with the pod.
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
	// PoolDegraded means that existing volumes work and Berth places no new ones, because
	// a physical volume is missing or the pool is read-only.
	PoolDegraded PoolHealth = "Degraded"
	// PoolMissing means that a pool which holds volumes is not on the node.
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
