package upkeep

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// problem is the reason and message of a condition; the zero value says that nothing is wrong.
type problem struct{ reason, message string }

// show updates the condition Ready for p, and says whether it changed. The condition
// only exists while something is wrong, or after something was.
func show(conditions *[]metav1.Condition, generation int64, p problem) bool {
	if p.reason == "" && meta.FindStatusCondition(*conditions, v1alpha1.ConditionReady) == nil {
		return false
	}
	c := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReplicasReady, ObservedGeneration: generation}
	if p.reason != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, p.reason, p.message
	}
	return meta.SetStatusCondition(conditions, c)
}
