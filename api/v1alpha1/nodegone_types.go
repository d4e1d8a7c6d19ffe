package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeGonePolicy is what becomes of claims whose node was deleted.
//
// +kubebuilder:validation:Enum=Keep;ReleaseClaims
type NodeGonePolicy string

const (
	// NodeGoneKeep leaves the claims as they are: their pods wait for the node.
	NodeGoneKeep NodeGonePolicy = "Keep"
	// NodeGoneReleaseClaims deletes the claims after a delay, so that others can be made in
	// their place on other nodes. Their PersistentVolumes, Volumes and data are kept.
	NodeGoneReleaseClaims NodeGonePolicy = "ReleaseClaims"
)

// NodeGoneAfter is the delay where none is given.
const NodeGoneAfter = time.Hour

// OnNodeGone says what becomes of claims whose only copy is on a node whose Node object
// was deleted. A Node that is there and not ready is not gone.
//
// +kubebuilder:validation:XValidation:rule="!has(self.after) || duration(self.after) >= duration('1m') && duration(self.after) <= duration('8760h')",message="after must be between 1m and 8760h"
type OnNodeGone struct {
	// policy is Keep, or ReleaseClaims. A deleted Node object is no proof that data is
	// gone: neither deletes any.
	// +optional
	// +kubebuilder:default=Keep
	Policy NodeGonePolicy `json:"policy,omitempty"`

	// after is how long a Node must have been gone before claims are released.
	// +optional
	// +kubebuilder:default="1h"
	// +kubebuilder:validation:Type=string
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+[hms])+$`
	After *metav1.Duration `json:"after,omitempty"`
}

// NodeGone is what a class says of claims whose node was deleted, and after how long. A
// class that says nothing, or that is not there, keeps them.
func (c *PoolClass) NodeGone() (NodeGonePolicy, time.Duration) {
	if c == nil || c.Spec.OnNodeGone == nil || c.Spec.OnNodeGone.Policy != NodeGoneReleaseClaims {
		return NodeGoneKeep, 0
	}
	if after := c.Spec.OnNodeGone.After; after != nil {
		return NodeGoneReleaseClaims, after.Duration
	}
	return NodeGoneReleaseClaims, NodeGoneAfter
}
