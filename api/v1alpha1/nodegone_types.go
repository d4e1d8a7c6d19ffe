package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeGonePolicy says what Berth does with claims whose Node was deleted.
//
// +kubebuilder:validation:Enum=Keep;ReleaseClaims
type NodeGonePolicy string

const (
	// NodeGoneKeep leaves the claims as they are: their pods wait for the node.
	NodeGoneKeep NodeGonePolicy = "Keep"
	// NodeGoneReleaseClaims deletes the claims after a delay, so that new ones can take their
	// place on other nodes. Berth keeps their PersistentVolumes, Volumes and data.
	NodeGoneReleaseClaims NodeGonePolicy = "ReleaseClaims"
)

// NodeGoneAfter is the default delay.
const NodeGoneAfter = time.Hour

// OnNodeGone says what Berth does with claims whose only copy is on a node whose Node object
// was deleted. A Node that exists and is not ready is not gone.
//
// +kubebuilder:validation:XValidation:rule="!has(self.after) || duration(self.after) >= duration('1m') && duration(self.after) <= duration('8760h')",message="after must be between 1m and 8760h"
type OnNodeGone struct {
	// policy is Keep or ReleaseClaims. Neither deletes data: a deleted Node object is no proof
	// that the data is gone.
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

// NodeGone returns the policy of a class for claims whose Node was deleted, and its delay. A
// class that sets none, or is nil, keeps the claims.
func (c *PoolClass) NodeGone() (NodeGonePolicy, time.Duration) {
	if c == nil || c.Spec.OnNodeGone == nil || c.Spec.OnNodeGone.Policy != NodeGoneReleaseClaims {
		return NodeGoneKeep, 0
	}
	if after := c.Spec.OnNodeGone.After; after != nil {
		return NodeGoneReleaseClaims, after.Duration
	}
	return NodeGoneReleaseClaims, NodeGoneAfter
}
