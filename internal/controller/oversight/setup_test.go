package oversight

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"berth.dev/berth/internal/ownership"
)

func TestANodeIsLookedAtWhenLabelsOfVolumesOnItChange(t *testing.T) {
	bare, other := node("n1"), node("n1", func(n *corev1.Node) { n.Labels = map[string]string{"zone": "a"} })
	has := node("n1", labelledNode)
	for name, tc := range map[string]struct{ got, want bool }{
		"one appears":      {relabelled.Update(event.UpdateEvent{ObjectOld: bare, ObjectNew: has}), true},
		"one goes":         {relabelled.Update(event.UpdateEvent{ObjectOld: has, ObjectNew: bare}), true},
		"another changes":  {relabelled.Update(event.UpdateEvent{ObjectOld: bare, ObjectNew: other}), false},
		"it stays":         {relabelled.Update(event.UpdateEvent{ObjectOld: has, ObjectNew: has}), false},
		"a node has one":   {relabelled.Create(event.CreateEvent{Object: has}), true},
		"a node has none":  {relabelled.Create(event.CreateEvent{Object: other}), false},
		"the node is gone": {relabelled.Delete(event.DeleteEvent{Object: has}), false},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: it is looked at: %v", name, tc.got)
		}
	}
}

// A send to a queue that is not there would block for ever, which ends the test.
func TestWithoutAQueueNoOtherVolumeIsAlerted(t *testing.T) {
	inWorld(t, cluster(t, shared()), func(w *world) { alert(w.t.Context(), w.controller(), "n1") })
}

func TestAVolumeConcernsTheNodesOfItsRecord(t *testing.T) {
	v := object(t, shared(func(v *ownership.Volume) { v.Replicas = v.Replicas[1:] }))
	for node, want := range map[string]bool{"n1": true, "n2": true, "n3": false} {
		if got := concerns(v.Status.Ownership, map[string]bool{node: true}); got != want {
			t.Errorf("its primary is n1, and its replica on n2: it concerns %s: %v", node, got)
		}
	}
}
