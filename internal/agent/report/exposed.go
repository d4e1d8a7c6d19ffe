package report

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/provision"
)

// exposed is the condition of a node with warnings. Its reason is that of the first warning:
// a warning that a pod did something comes before one that a pod could do something.
func exposed(warnings []provision.Warning) []metav1.Condition {
	if len(warnings) == 0 {
		return nil
	}
	var messages []string
	for _, w := range warnings {
		messages = append(messages, w.Message)
	}
	return []metav1.Condition{{
		Type: v1alpha1.ConditionExposed, Status: metav1.ConditionTrue, Reason: string(warnings[0].Reason), Message: entries.Clip(strings.Join(messages, "; ")),
	}}
}
