package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ProvisionerType names the storage technology that carves volumes out of a pool.
//
// +kubebuilder:validation:Enum=LVM;LVMThin;ZFS;Btrfs;Device
type ProvisionerType string

const (
	// ProvisionerLVM carves thick logical volumes out of a volume group.
	ProvisionerLVM ProvisionerType = "LVM"
	// ProvisionerLVMThin carves thin volumes out of a thin pool.
	ProvisionerLVMThin ProvisionerType = "LVMThin"
	// ProvisionerZFS carves zvols and datasets out of a zpool.
	ProvisionerZFS ProvisionerType = "ZFS"
	// ProvisionerBtrfs carves subvolumes out of a filesystem of btrfs.
	ProvisionerBtrfs ProvisionerType = "Btrfs"
	// ProvisionerDevice hands out whole disks.
	ProvisionerDevice ProvisionerType = "Device"
)

// PoolClass says where volumes may come from. Administrators write it and
// StorageClasses name it in their parameter poolClass.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=bpc,categories={berth,storage}
// +kubebuilder:printcolumn:name="Provisioner",type=string,JSONPath=`.spec.provisioner`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PoolClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the administrator's wish.
	// +required
	Spec PoolClassSpec `json:"spec"`
	// status is the controller's view of the class.
	// +optional
	Status PoolClassStatus `json:"status,omitempty"`
}

// PoolClassSpec selects pools and says how volumes are carved out of them.
//
// +kubebuilder:validation:XValidation:rule="self.provisioner == oldSelf.provisioner",message="provisioner is immutable: make a new PoolClass"
// +kubebuilder:validation:XValidation:rule="!has(self.spare) || quantity(string(self.spare)).isInteger() && !quantity(string(self.spare)).isLessThan(quantity('0'))",message="spare must be a whole number of bytes, zero or more"
// +kubebuilder:validation:XValidation:rule="has(self.lvm) == (self.provisioner == 'LVM')",message="lvm must be set exactly when provisioner is LVM"
// +kubebuilder:validation:XValidation:rule="has(self.lvmThin) == (self.provisioner == 'LVMThin')",message="lvmThin must be set exactly when provisioner is LVMThin"
// +kubebuilder:validation:XValidation:rule="has(self.zfs) == (self.provisioner == 'ZFS')",message="zfs must be set exactly when provisioner is ZFS"
// +kubebuilder:validation:XValidation:rule="has(self.btrfs) == (self.provisioner == 'Btrfs')",message="btrfs must be set exactly when provisioner is Btrfs"
// +kubebuilder:validation:XValidation:rule="has(self.devices) == (self.provisioner == 'Device')",message="devices must be set exactly when provisioner is Device"
// +kubebuilder:validation:XValidation:rule="self.provisioner != 'Device' || !has(self.spare) && !has(self.sparePercent)",message="a disk is handed out whole: it has no spare"
// +kubebuilder:validation:XValidation:rule="!has(self.trimInterval) || duration(self.trimInterval) >= duration('1h') && duration(self.trimInterval) <= duration('8760h')",message="trimInterval must be between 1h and 8760h"
// +kubebuilder:validation:XValidation:rule="!has(self.trimInterval) || !(self.provisioner in ['ZFS', 'Btrfs'])",message="trimInterval is for pools that gain by a trim: zpools and filesystems of btrfs do not"
type PoolClassSpec struct {
	// provisioner carves the volumes. Immutable.
	// +required
	Provisioner ProvisionerType `json:"provisioner"`

	// nodeSelector limits the class to some nodes. Empty means all nodes that
	// have one of the pools.
	// +optional
	NodeSelector *metav1.LabelSelector `json:"nodeSelector,omitempty"`

	// lvm selects volume groups. Required when provisioner is LVM.
	// +optional
	LVM *LVMPools `json:"lvm,omitempty"`

	// lvmThin selects thin pools. Required when provisioner is LVMThin.
	// +optional
	LVMThin *LVMThinPools `json:"lvmThin,omitempty"`

	// zfs selects zpools. Required when provisioner is ZFS.
	// +optional
	ZFS *ZFSPools `json:"zfs,omitempty"`

	// btrfs selects filesystems of btrfs. Required when provisioner is Btrfs.
	// +optional
	Btrfs *BtrfsPools `json:"btrfs,omitempty"`

	// devices selects whole disks. Required when provisioner is Device.
	// +optional
	Devices *DevicePools `json:"devices,omitempty"`

	// spare is kept free in every pool of this class: no volume is created or
	// expanded into it. Other classes on the same pool may still use it.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	Spare *resource.Quantity `json:"spare,omitempty"`

	// sparePercent of the size of every pool is kept free in the same way; both
	// count together.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	SparePercent int32 `json:"sparePercent,omitempty"`

	// inlineVolumes says whose pods may describe volumes of the class in their own spec.
	// Without it no pod may.
	// +optional
	InlineVolumes *InlineVolumes `json:"inlineVolumes,omitempty"`

	// onNodeGone says what Berth does with claims whose only copy is on a node whose Node
	// object was deleted. Without it Berth keeps them.
	// +optional
	OnNodeGone *OnNodeGone `json:"onNodeGone,omitempty"`

	// trimInterval is how often the node has each mounted filesystem of the class's volumes
	// discard its free blocks, as fstrim does. It applies to existing volumes, too. Without it
	// Berth trims none.
	// +optional
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+[hms])+$`
	TrimInterval *metav1.Duration `json:"trimInterval,omitempty"`
}

// LVMPools names the volume groups of a class.
//
// +kubebuilder:validation:XValidation:rule="!has(self.create) || self.volumeGroups.size() == 1 && !self.volumeGroups[0].matches('[*?]')",message="create: volumeGroups must name the one volume group that is to be made"
type LVMPools struct {
	// volumeGroups are names of volume groups, or patterns of names in which * stands for
	// any characters and ? for one. A node serves the class from those of them that it has.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(g, g != '.' && g != '..')",message="volumeGroups: . and .. are no volume groups"
	// +kubebuilder:validation:items:MaxLength=127
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_+.*?][A-Za-z0-9_+.*?-]*$`
	VolumeGroups []string `json:"volumeGroups"`

	// create lets Berth make the volume group, and grow it.
	// +optional
	Create *GroupCreation `json:"create,omitempty"`

	// wipe says what Berth does with a deleted volume's bytes before another volume may have
	// the space. Discard lets the disk drop them where they then surely read as zeros, and
	// overwrites them with zeros elsewhere. Zero always overwrites them. None leaves them: a pod
	// with a raw block volume on the space can read them. Berth records the policy with each
	// volume when it makes it: a change applies to volumes that are made later.
	// +optional
	// +kubebuilder:default=Discard
	Wipe WipePolicy `json:"wipe,omitempty"`
}

// WipePolicy says what Berth does with the bytes of deleted volumes.
//
// +kubebuilder:validation:Enum=Discard;Zero;None
type WipePolicy string

// The policies of wiping.
const (
	WipeDiscard WipePolicy = "Discard"
	WipeZero    WipePolicy = "Zero"
	WipeNone    WipePolicy = "None"
)

// LVMThinPools names the thin pools of a class, and how much of them Berth may promise to volumes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.create) || self.thinPools.size() == 1",message="create: thinPools must name the one thin pool that is to be made"
// +kubebuilder:validation:XValidation:rule="!has(self.autoExtend) || !has(self.maxFillPercent) || self.autoExtend.atPercent <= self.maxFillPercent",message="autoExtend: a pool that is extended at more than maxFillPercent is closed before"
type LVMThinPools struct {
	// thinPools are thin pools, as volume group/logical volume. A node serves the class
	// from those of them that it has.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(p, !p.matches('^[.][.]?/|/[.][.]?$'))",message="thinPools: . and .. are no names of LVM"
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9_+.][A-Za-z0-9_+.-]*/[A-Za-z0-9_+.][A-Za-z0-9_+.-]*$`
	ThinPools []string `json:"thinPools"`

	// create lets Berth make the thin pool, with its volume group if disks are named.
	// +optional
	Create *ThinPoolCreation `json:"create,omitempty"`

	// autoExtend lets Berth extend the thin pools before they are full, including those that
	// it did not make. Without it that is left to the administrator of the node.
	// +optional
	AutoExtend *ThinPoolExtension `json:"autoExtend,omitempty"`

	// overprovisionPercent is how much of a pool, less its spare, Berth may promise to all
	// volumes together. 100 promises no more than the pool has.
	// +optional
	// +kubebuilder:default=100
	// +kubebuilder:validation:Minimum=100
	// +kubebuilder:validation:Maximum=10000
	OverprovisionPercent int32 `json:"overprovisionPercent,omitempty"`

	// maxFillPercent closes a pool to new volumes and to the growth of its volumes, once its
	// data or its metadata is that full: the existing volumes need the rest.
	// +optional
	// +kubebuilder:default=90
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	MaxFillPercent int32 `json:"maxFillPercent,omitempty"`
}

// BtrfsPools names the filesystems of a class.
//
// +kubebuilder:validation:XValidation:rule="!has(self.create) || self.filesystems.size() == 1",message="create: filesystems must name the one filesystem that is to be made"
type BtrfsPools struct {
	// filesystems are labels of filesystems of btrfs that are mounted on the node, anywhere. A
	// node serves the class from those of them that it has. They need simple quotas
	// (btrfs quota enable --simple), which Linux has since 6.7.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=100
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9][A-Za-z0-9_.-]*$`
	Filesystems []string `json:"filesystems"`

	// create lets Berth make the filesystem, grow it, and mount it when the node starts.
	// +optional
	Create *GroupCreation `json:"create,omitempty"`
}

// DevicePools selects disks, to be handed out whole or to make pools of. A disk must match every
// field, and be empty: Berth never takes a disk with a partition table, a filesystem or
// any other signature.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minSize) || quantity(string(self.minSize)).isInteger()",message="minSize must be a whole number of bytes"
// +kubebuilder:validation:XValidation:rule="!has(self.maxSize) || quantity(string(self.maxSize)).isInteger()",message="maxSize must be a whole number of bytes"
type DevicePools struct {
	// paths are patterns of device nodes or links to them, in which * stands for any
	// characters but a slash: /dev/disk/by-id/nvme-*, /dev/sd*.
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:Pattern=`^/dev/[A-Za-z0-9_+.:@*?\[\]/-]+$`
	Paths []string `json:"paths"`

	// minSize of a disk.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	MinSize *resource.Quantity `json:"minSize,omitempty"`

	// maxSize of a disk.
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=32
	MaxSize *resource.Quantity `json:"maxSize,omitempty"`

	// media of a disk: SSD or HDD. Empty selects both.
	// +optional
	Media Media `json:"media,omitempty"`
}

// Media is the kind of a disk: HDD rotates, SSD does not.
//
// +kubebuilder:validation:Enum=SSD;HDD
type Media string

// The media of disks.
const (
	SSD Media = "SSD"
	HDD Media = "HDD"
)

// PoolClassStatus is the controller's view of a class.
type PoolClassStatus struct {
	// nodes is how many nodes serve the class now.
	// +optional
	Nodes int32 `json:"nodes"`

	// conditions: Ready is True while at least one node serves the class.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// PoolClassList is a list of PoolClasses.
//
// +kubebuilder:object:root=true
type PoolClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PoolClass `json:"items"`
}
