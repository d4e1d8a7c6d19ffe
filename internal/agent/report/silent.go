package report

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/provision"
)

// unread says that nothing of a pool could be read. Classes and inventory of such a pool are
// not known, so only its problem tells of it.
func unread(p provision.Pool) bool { return p.Total == 0 && p.Problem != "" }

// silent is the condition of a node with pools that do not answer.
func silent(s pools.Latest) []metav1.Condition {
	var said []string
	if s.Silent != nil {
		said = append(said, s.Silent.Error())
	}
	for _, p := range s.Pools {
		if unread(p) {
			said = append(said, p.Name+": "+p.Problem)
		}
	}
	if len(said) == 0 {
		return nil
	}
	return []metav1.Condition{{
		Type: v1alpha1.ConditionSilent, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoAnswer,
		Message: entries.Clip("some of the node's pools cannot be asked, and nothing new is placed in them: " + strings.Join(said, "; ")),
	}}
}
