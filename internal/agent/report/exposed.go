package report

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/internal/agent/entries"
	"berth.dev/berth/internal/provision"
)

// Exposed is True while the machine reads what pods write as its own, as far as Berth can
// tell; else it is absent.
const Exposed = "Exposed"

// exposed is the condition of a node with warnings. Its reason is that of the first: what a
// pod did comes before what it could do.
func exposed(warnings []provision.Warning) []metav1.Condition {
	if len(warnings) == 0 {
		return nil
	}
	var messages []string
	for _, w := range warnings {
		messages = append(messages, w.Message)
	}
	return []metav1.Condition{{
		Type: Exposed, Status: metav1.ConditionTrue, Reason: string(warnings[0].Reason), Message: entries.Clip(strings.Join(messages, "; ")),
	}}
}
