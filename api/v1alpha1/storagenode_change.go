package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PoolChange is something that Berth did to a pool because a PoolClass asks for it.
type PoolChange struct {
	// at is when, by the node's clock.
	// +required
	At metav1.Time `json:"at"`

	// reason is Made, Grown, Extended or Imported.
	// +required
	Reason PoolChangeReason `json:"reason"`

	// message says what was done.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// PoolChangeReason is what was done to a pool.
//
// +kubebuilder:validation:Enum=Made;Grown;Extended;Imported
type PoolChangeReason string

const (
	// PoolMade means that there was none before.
	PoolMade PoolChangeReason = "Made"
	// PoolGrown means that disks were added to it, or a share of those.
	PoolGrown PoolChangeReason = "Grown"
	// PoolExtended means that it filled up.
	PoolExtended PoolChangeReason = "Extended"
	// PoolImported means that it was on the disks, and the kernel did not know it.
	PoolImported PoolChangeReason = "Imported"
)

// The conditions of a StorageNode that tell of pools.
const (
	// ConditionPoolsManaged is there while PoolClasses ask Berth for pools on the node, and
	// False while one of them is not as asked.
	ConditionPoolsManaged = "PoolsManaged"
	// ConditionFilling is True while a thin pool of some class fills up, and else absent.
	ConditionFilling = "Filling"
)

const (
	// FillingPercent of its data or its metadata is where a thin pool fills up, and
	// NearlyFullPercent where it is about to be full.
	FillingPercent    = 80
	NearlyFullPercent = 90
)
