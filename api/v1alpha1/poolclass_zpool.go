package v1alpha1

// ZpoolCreation lets Berth make the zpool that its class names, out of empty disks, on
// every node that the class selects. layout, width and ashift never change.
//
// +kubebuilder:validation:XValidation:rule="has(self.width) == self.layout.startsWith('RaidZ')",message="width must be set exactly when layout is RaidZ1 or RaidZ2"
// +kubebuilder:validation:XValidation:rule="self.layout != 'RaidZ2' || !has(self.width) || self.width >= 4",message="width: RaidZ2 takes four disks or more"
// +kubebuilder:validation:XValidation:rule="has(self.width) == has(oldSelf.width) && (!has(self.width) || self.width == oldSelf.width)",message="width is immutable: the vdevs of a zpool stay as they were made"
type ZpoolCreation struct {
	// disks that the zpool is made of. Berth adds disks that match later, as many at a
	// time as a vdev of the layout has, and never takes one out. A disk that another driver
	// attaches to the node for a pod is empty too: the paths must not match it.
	// +required
	Disks DevicePools `json:"disks"`

	// layout of every vdev: Stripe is one disk, and the zpool is lost with it; Mirror is two
	// disks that hold the same data; RaidZ1 and RaidZ2 are width disks, of which one (RaidZ1)
	// or two (RaidZ2) may fail. All disks of one vdev have the same size. Immutable.
	// +required
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="layout is immutable: make a new PoolClass for another zpool"
	Layout ZpoolLayout `json:"layout"`

	// width is how many disks each vdev of RaidZ1 or RaidZ2 has. Immutable.
	// +optional
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=16
	Width int32 `json:"width,omitempty"`

	// ashift is the binary logarithm of the smallest write to a disk, in bytes: 12 for
	// 4 KiB. Immutable.
	// +optional
	// +kubebuilder:default=12
	// +kubebuilder:validation:Minimum=12
	// +kubebuilder:validation:Maximum=16
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="ashift is immutable: make a new PoolClass for another zpool"
	Ashift int32 `json:"ashift,omitempty"`
}

// ZpoolLayout says how a vdev keeps its data when disks fail.
//
// +kubebuilder:validation:Enum=Stripe;Mirror;RaidZ1;RaidZ2
type ZpoolLayout string

// The layouts of zpools.
const (
	ZpoolStripe ZpoolLayout = "Stripe"
	ZpoolMirror ZpoolLayout = "Mirror"
	ZpoolRaidZ1 ZpoolLayout = "RaidZ1"
	ZpoolRaidZ2 ZpoolLayout = "RaidZ2"
)
