package upkeep

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Types of conditions that this package sets.
const (
	// ConditionReady is on a PoolClass always, and on a Volume once something was
	// wrong with it.
	ConditionReady = "Ready"
	// ConditionOrphaned is on a Volume with data that neither a claim nor a
	// PersistentVolume refers to.
	ConditionOrphaned = "Orphaned"
)

// Reasons of those conditions. A Volume that is not Ready has the reason of its
// replica's entry, or NodeAway.
const (
	reasonReady     = "ReplicasReady"
	reasonNodeAway  = "NodeAway"
	reasonClaimGone = "ClaimGone"
	reasonReferred  = "Referred"
	reasonServed    = "NodesServe"
	reasonNoNode    = "NoNode"
)

// problem is what a condition says when something is wrong; the zero value says
// that nothing is.
type problem struct{ reason, message string }

// show brings a condition that is only there when something is, or was, wrong
// in line with p. It says whether anything changed.
func show(conditions *[]metav1.Condition, generation int64, p problem) bool {
	if p.reason == "" && meta.FindStatusCondition(*conditions, ConditionReady) == nil {
		return false
	}
	c := metav1.Condition{Type: ConditionReady, Status: metav1.ConditionTrue, Reason: reasonReady, ObservedGeneration: generation}
	if p.reason != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, p.reason, p.message
	}
	return meta.SetStatusCondition(conditions, c)
}
