package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PoolChange is a change that Berth made to a pool because a PoolClass asks for it.
type PoolChange struct {
	// at is the time of the change, by the node's clock.
	// +required
	At metav1.Time `json:"at"`

	// reason is Made, Grown, Extended or Imported.
	// +required
	Reason PoolChangeReason `json:"reason"`

	// message describes the change.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// PoolChangeReason is the kind of a change to a pool.
//
// +kubebuilder:validation:Enum=Made;Grown;Extended;Imported
type PoolChangeReason string

const (
	// PoolMade means that Berth made the pool.
	PoolMade PoolChangeReason = "Made"
	// PoolGrown means that Berth added disks to the pool, or a share of the space of such disks.
	PoolGrown PoolChangeReason = "Grown"
	// PoolExtended means that Berth extended the pool because it filled up.
	PoolExtended PoolChangeReason = "Extended"
	// PoolImported means that Berth imported a pool that was on the disks and that the kernel
	// did not know.
	PoolImported PoolChangeReason = "Imported"
)

const (
	// FillingPercent is how full its data or its metadata is when a thin pool counts as filling
	// up. NearlyFullPercent is the same for a thin pool that is about to be full.
	FillingPercent    = 80
	NearlyFullPercent = 90
)
