package v1alpha1

// GroupCreation lets Berth make the volume group that its class names, out of empty
// disks, on every node that the class selects.
type GroupCreation struct {
	// disks that the volume group is made of. Berth adds disks that match later, and never
	// takes one out. A disk that another driver attaches to the node for a pod is empty too:
	// the paths must not match it.
	// +required
	Disks DevicePools `json:"disks"`
}

// ThinPoolCreation lets Berth make the thin pool that its class names, in a volume group
// that Berth made.
type ThinPoolCreation struct {
	// disks that the volume group is made of, as in a class of volume groups. Without
	// them another class must create the volume group.
	// +optional
	Disks *DevicePools `json:"disks,omitempty"`

	// sizePercent is the least share of the volume group that the thin pool has. Berth extends
	// the thin pool to it when the volume group grows. The remainder is for autoExtend, and for
	// the volumes of other classes.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	SizePercent int32 `json:"sizePercent,omitempty"`
}

// ThinPoolExtension extends thin pools before they are full.
type ThinPoolExtension struct {
	// atPercent is how full its data or its metadata must be before a thin pool is extended.
	// +optional
	// +kubebuilder:default=80
	// +kubebuilder:validation:Minimum=50
	// +kubebuilder:validation:Maximum=99
	AtPercent int32 `json:"atPercent,omitempty"`

	// byPercent of its current size is added to the thin pool each time, while its volume group
	// has room.
	// +optional
	// +kubebuilder:default=20
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	ByPercent int32 `json:"byPercent,omitempty"`
}
