package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LUN is a disk that several nodes can reach, and that an administrator gives to Berth to hand out: a claim
// of a class of shared disks gets one of the class's LUNs, whole. Berth neither makes nor deletes the disk.
//
// ---
// A volume takes a LUN by writing itself into status.volume, with the resourceVersion that was read: of two
// volumes one succeeds. The rules here refuse any other way from one volume to the next.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,path=luns,singular=lun,categories={berth,storage}
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.spec.capacity`
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.spec.poolClass`
// +kubebuilder:printcolumn:name="Volume",type=string,JSONPath=`.status.volume.name`
// +kubebuilder:printcolumn:name="Disk",type=string,priority=1,JSONPath=`.spec.disk.handle`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.spec.disk == oldSelf.spec.disk",message="spec.disk is immutable: delete the LUN, and make another one"
// +kubebuilder:validation:XValidation:rule="quantity(string(self.spec.capacity)).compareTo(quantity(string(oldSelf.spec.capacity))) >= 0",message="spec.capacity of a LUN cannot shrink"
// +kubebuilder:validation:XValidation:rule="!oldSelf.?status.volume.hasValue() || !self.?status.volume.hasValue() || self.status.volume == oldSelf.status.volume",message="a LUN does not go from one volume to another"
// +kubebuilder:validation:XValidation:rule="!(oldSelf.?status.state.orValue('None') in ['Released','Wiping']) || self.?status.state.orValue('None') in ['Released','Wiping'] && self.?status.volume == oldSelf.?status.volume || oldSelf.?status.wipe.outcome.orValue('None') == 'Cleared' && !oldSelf.?status.wipe.node.hasValue() && self.?status.state.orValue('None') in ['Available','Unavailable'] && !self.?status.volume.hasValue()",message="a LUN stays Released until its disk is wiped: the disk may have a volume's data"
// +kubebuilder:validation:XValidation:rule="!self.?status.wipe.hasValue() || oldSelf.?status.wipe.hasValue() || oldSelf.?status.state.orValue('None') == 'Bound' && self.status.state == 'Released'",message="a wipe is ordered as the LUN is released, and never later"
// +kubebuilder:validation:XValidation:rule="!oldSelf.?status.wipe.hasValue() || self.?status.wipe.hasValue() || oldSelf.status.wipe.?outcome.orValue('None') == 'Cleared' && !oldSelf.status.wipe.?node.hasValue()",message="a wipe that was ordered ends when the disk is wiped and no node has it"
type LUN struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the administrator's word.
	// +required
	Spec LUNSpec `json:"spec"`
	// status says which volume has the disk. The controllers of shared disks write it.
	// +optional
	Status LUNStatus `json:"status,omitempty"`
}

// LUNSpec names a disk, and says what it is good for.
//
// +kubebuilder:validation:XValidation:rule="quantity(string(self.capacity)).isInteger() && quantity(string(self.capacity)).isGreaterThan(quantity('0'))",message="capacity of a LUN must be a positive whole number of bytes"
type LUNSpec struct {
	// disk by its handle and its identity. No two LUNs may name one disk: neither is handed out then.
	// +required
	Disk SharedDisk `json:"disk"`

	// capacity of the disk in bytes. If the disk is grown on its target, write the new size here
	// afterwards: then its volume may be expanded.
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Capacity resource.Quantity `json:"capacity"`

	// poolClass is the name by which StorageClasses ask for this LUN and for others like it, in their
	// parameter of this name. No PoolClass object is needed.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	PoolClass string `json:"poolClass"`

	// persistent says that the target keeps reservations through its own loss of power. Only then does
	// a standby take the disk over without a person.
	// +optional
	Persistent bool `json:"persistent,omitempty"`
}

// LUNStatus says which volume has a LUN.
type LUNStatus struct {
	// state of the LUN.
	// +optional
	State LUNState `json:"state,omitempty"`
	// message says why the LUN is not handed out, and what an administrator does about it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// volume that has the LUN. One that is deleted keeps it until the disk is wiped: see Released.
	// +optional
	Volume *LUNVolume `json:"volume,omitempty"`
	// wipe is ordered once the volume is proved to have ended. A Released LUN without it waits for an
	// administrator.
	// +optional
	Wipe *LUNWipe `json:"wipe,omitempty"`
}

// LUNState is whether a LUN is handed out.
//
// +kubebuilder:validation:Enum=Available;Bound;Released;Wiping;Unavailable
type LUNState string

const (
	// LUNAvailable: a volume may take it.
	LUNAvailable LUNState = "Available"
	// LUNBound: a volume has it.
	LUNBound LUNState = "Bound"
	// LUNReleased: its volume is deleted, and the disk may still have the data. No volume gets it. It waits for a
	// node that wipes it, or for an administrator.
	LUNReleased LUNState = "Released"
	// LUNWiping: a node wipes the disk, or is still attached to it. No volume gets it.
	LUNWiping LUNState = "Wiping"
	// LUNUnavailable: something else names the same disk: another LUN, or a Volume that was made by hand.
	LUNUnavailable LUNState = "Unavailable"
)

// LUNVolume is the Volume that has a LUN.
//
// +structType=atomic
type LUNVolume struct {
	// name of the Volume.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// uid of the Volume: another one of that name does not have the LUN.
	// +required
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	UID types.UID `json:"uid"`
}

// LUNWipe is how far the wipe of a LUN has come. The controllers order it and choose the node, each time with
// an epoch of its own; that node's agent writes the rest.
//
// +kubebuilder:validation:XValidation:rule="self.epoch.number >= oldSelf.epoch.number && (self.epoch.number == oldSelf.epoch.number) == (self.epoch.id == oldSelf.epoch.id)",message="the epoch of a wipe changes as a whole, and grows"
// +kubebuilder:validation:XValidation:rule="!has(self.node) || has(self.keys) && self.keys.exists(k, k.node == self.node && dyn(k.epoch) == dyn(self.epoch))",message="the key of the node that wipes is listed before the disk sees it"
// +kubebuilder:validation:XValidation:rule="!has(self.node) || dyn(self.epoch) != dyn(oldSelf.epoch) || has(oldSelf.node) && self.node == oldSelf.node",message="each node that wipes has an epoch of its own"
// +kubebuilder:validation:XValidation:rule="dyn(self.epoch) == dyn(oldSelf.epoch) || !has(self.outcome) && !has(self.done)",message="a wipe with a new epoch begins anew"
// +kubebuilder:validation:XValidation:rule="dyn(self.epoch) != dyn(oldSelf.epoch) || !has(oldSelf.outcome) || (has(self.outcome) ? oldSelf.outcome == 'Wiped' || self.outcome == oldSelf.outcome : !has(self.node))",message="the outcome of a wipe stays while its node is named"
// +kubebuilder:validation:XValidation:rule="!has(self.outcome) || self.outcome != 'Cleared' || has(oldSelf.outcome) && oldSelf.outcome in ['Wiped','Cleared']",message="a disk is wiped before its reservation is cleared"
// +kubebuilder:validation:XValidation:rule="self.mode == oldSelf.mode && (!has(oldSelf.proved) || !oldSelf.proved || has(self.proved) && self.proved)",message="whose the disk was does not change"
type LUNWipe struct {
	// epoch of the wipe, later than each of the volume's. Before a node is chosen it is the volume's last.
	// +required
	Epoch Epoch `json:"epoch"`
	// keys are the reservation keys from which the disk may be taken: the last ones of the volume, and those
	// of the wipe, newest last.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Keys []ReservationKey `json:"keys,omitempty"`
	// mode of the volume. Pods were given a Block disk as it was. A Filesystem disk is wiped only if it shows
	// that it was the volume's.
	// +required
	Mode VolumeMode `json:"mode"`
	// proved says that the disk has shown that it was the volume's. Afterwards it may be wiped in part.
	// +optional
	Proved bool `json:"proved,omitempty"`
	// node that wipes the disk. It is named until it has detached the disk.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node,omitempty"`
	// done is how many bytes from the beginning of the disk are wiped, as far as that lasts.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Done int64 `json:"done,omitempty"`
	// outcome on this node, which only detaches the disk then.
	// +optional
	Outcome LUNWipeOutcome `json:"outcome,omitempty"`
	// problem is what went wrong last, until something goes well.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Problem string `json:"problem,omitempty"`
	// tries counts the nodes that have failed. The next one is chosen at retryAt.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Tries int32 `json:"tries,omitempty"`
	// retryAt is when the next node is chosen.
	// +optional
	RetryAt *metav1.Time `json:"retryAt,omitempty"`
}

// LUNWipeOutcome is how a wipe has ended on a node.
//
// +kubebuilder:validation:Enum=Wiped;Cleared;Failed
type LUNWipeOutcome string

const (
	// LUNWiped: every byte of the disk reads as zero, by the disk's own word, and the disk is reserved for the
	// wipe.
	LUNWiped LUNWipeOutcome = "Wiped"
	// LUNCleared: the disk is wiped, and reserved under a key from which any next volume takes it.
	LUNCleared LUNWipeOutcome = "Cleared"
	// LUNWipeFailed: the node cannot use the disk. Another one is chosen.
	LUNWipeFailed LUNWipeOutcome = "Failed"
)

// LUNList is a list of LUNs.
//
// +kubebuilder:object:root=true
type LUNList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []LUN `json:"items"`
}

// Has says whether a Volume, and no other of its name, has the LUN.
func (l *LUN) Has(v *Volume) bool {
	return l.Status.Volume != nil && l.Status.Volume.Name == v.Name && l.Status.Volume.UID == v.UID
}
