package v1alpha1

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// VolumeStatus is the observed state of a volume.
type VolumeStatus struct {
	// conditions of the volume as a whole, set by the controller when there is
	// something to say: a volume whose replica became ready at once has none.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// ownership is the record of a volume with several replicas: which node may write, and which
	// replicas count. Volumes with one copy have none.
	// +optional
	Ownership *Ownership `json:"ownership,omitempty"`

	// replicas are the reports of the nodes, each written by its own agent.
	// +optional
	// +listType=map
	// +listMapKey=node
	// +kubebuilder:validation:MaxItems=8
	Replicas []ReplicaStatus `json:"replicas,omitempty"`
}

// Wish returns what the spec asks of a node, or nil. It points into the Volume.
func (v *Volume) Wish(node string) *ReplicaSpec { return wish(v.Spec.Replicas, node) }

func wish(replicas []ReplicaSpec, node string) *ReplicaSpec {
	for i := range replicas {
		if replicas[i].Node == node {
			return &replicas[i]
		}
	}
	return nil
}

// Entry returns a node's report on the volume, or nil. It points into the Volume.
func (v *Volume) Entry(node string) *ReplicaStatus {
	for i := range v.Status.Replicas {
		if v.Status.Replicas[i].Node == node {
			return &v.Status.Replicas[i]
		}
	}
	return nil
}

// ReplicaState is what a node says about making, keeping and removing its replica. Whether a
// replica of several counts is another question: see OwnedState.
//
//	         carved              copied           spec drops it
//	(none) ────────► Copying ────────────► Ready ────────────────► Gone
//	   │                │                    │                      ▲
//	   │ refused        │ device broken      │ device lost          │ deleted
//	   ▼                ▼                    ▼                      │
//	 Failed ◄──────► Failed ◄───────────► Failed ───────────────────┘
//
// A replica that needs no copying is carved Ready.
//
// +kubebuilder:validation:Enum=Copying;Ready;Failed;Gone
type ReplicaState string

const (
	// ReplicaCopying means that the replica was carved, and the node is still copying
	// the data of the volume's source to it.
	ReplicaCopying ReplicaState = "Copying"
	// ReplicaReady means that the data is there and can be used.
	ReplicaReady ReplicaState = "Ready"
	// ReplicaFailed means that the replica could not be made, or is broken; reason and
	// message say why. The agent retries where that can help.
	ReplicaFailed ReplicaState = "Failed"
	// ReplicaGone means that nothing of the replica is on the node, and the
	// entry may be dropped.
	ReplicaGone ReplicaState = "Gone"
)

// ReplicaStatus is one node's report on its replica.
//
// +kubebuilder:validation:XValidation:rule="!self.ready || self.state == 'Ready' && has(self.capacity)",message="a ready replica is in state Ready and reports its capacity"
type ReplicaStatus struct {
	// node that reports.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`

	// pool that holds the replica, or should have held it.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Pool string `json:"pool,omitempty"`

	// state of the replica.
	// +required
	State ReplicaState `json:"state"`

	// ready says whether the replica could become primary.
	// +required
	Ready bool `json:"ready"`

	// capacity is the actual size of the replica in bytes; absent when there is no
	// replica. The capacity of the volume cannot shrink below it.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// allocated is how many bytes of its pool the replica takes; absent when there is
	// no replica. It may be more than capacity, because of mirrors and extents.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Allocated *resource.Quantity `json:"allocated,omitempty"`

	// requested is the capacity from the spec that this report answers.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Requested *resource.Quantity `json:"requested,omitempty"`

	// reason is a CamelCase word for the state, from a fixed list.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message is for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// DriverName returns the name of the CSI driver that serves the volume.
func (v *Volume) DriverName() string { return cmp.Or(v.Spec.Driver, LocalDriverName) }

// Reserved says whether the Volume is a reservation: CreateVolume has not returned it yet.
func (v *Volume) Reserved() bool {
	_, reserved := v.Annotations[ReservedAnnotation]
	return reserved
}

// HasData says whether the entry proves that the node has, or had, the data of this
// very object in the entry's pool. An entry that reports a different volume of the same
// name, or that the node could make none, proves the opposite.
func (e *ReplicaStatus) HasData() bool {
	if e == nil {
		return false
	}
	switch e.State {
	case ReplicaReady, ReplicaCopying:
		return true
	case ReplicaFailed:
		return e.Capacity != nil || e.Reason == ReasonDeviceMissing
	default:
		return false
	}
}

// Found returns the node that has data under the Volume's name without proof that the data was
// made for this object. The node uses that data, or keeps it apart. Found is empty if there is
// no such node.
func (v *Volume) Found() (node string) {
	for i := range v.Status.Replicas {
		e := &v.Status.Replicas[i]
		if e.Reason == ReasonFound || e.State == ReplicaFailed && e.Reason == ReasonConflict {
			return e.Node
		}
	}
	return ""
}

// Reasons of a replica's state.
const (
	// ReasonCarved: the replica was made and is as the spec wants it.
	ReasonCarved = "Carved"
	// ReasonFound: the replica is as the spec wants it, and was there before the node first
	// reported on the object. Its data may be older than the object.
	ReasonFound = "Found"
	// ReasonCopying: the node is still copying the data.
	ReasonCopying = "Copying"
	// ReasonTaken: the snapshot was taken.
	ReasonTaken = "Taken"
	// ReasonNoSpace: the pool lacks room; another node may have it.
	ReasonNoSpace = "NoSpace"
	// ReasonPoolMissing: the pool is not on the node.
	ReasonPoolMissing = "PoolMissing"
	// ReasonInvalid: the spec can never be met as it stands.
	ReasonInvalid = "Invalid"
	// ReasonUnsupported: the pool's provisioner cannot do that.
	ReasonUnsupported = "Unsupported"
	// ReasonConflict: the pool holds something else under that name.
	ReasonConflict = "Conflict"
	// ReasonSourceMissing: the source of the copy is not on the node.
	ReasonSourceMissing = "SourceMissing"
	// ReasonProvisionerError: the provisioner failed; the agent tries again.
	ReasonProvisionerError = "ProvisionerError"
	// ReasonDeviceMissing: the replica was there and is not any more.
	ReasonDeviceMissing = "DeviceMissing"
	// ReasonInUse: the replica cannot be removed while it is open.
	ReasonInUse = "InUse"
	// ReasonRemoved: nothing of the replica is left on the node.
	ReasonRemoved = "Removed"
)
