package report

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/internal/agent/entries"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/provision"
)

// Silent is True while some pools cannot be asked, and others can; else it is absent.
const Silent = "Silent"

const reasonNoAnswer = "NoAnswer"

// unread says that nothing of a pool could be read: whatever a class names in it, and
// whatever Berth has there, only its problem tells of it.
func unread(p provision.Pool) bool { return p.Total == 0 && p.Problem != "" }

// silent is the condition of a node with pools that cannot be asked.
func silent(s pools.Snapshot) []metav1.Condition {
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
		Type: Silent, Status: metav1.ConditionTrue, Reason: reasonNoAnswer,
		Message: entries.Clip("some of the node's pools cannot be asked, and nothing new is placed in them: " + strings.Join(said, "; ")),
	}}
}
