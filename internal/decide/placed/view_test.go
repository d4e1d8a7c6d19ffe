package placed

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/provision"
)

type view = View[*v1alpha1.Volume, v1alpha1.ReplicaStatus, int]

// of is the view of a volume that wants its data on node n1, which has said something.
func of(name string) view {
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "n1", Pool: "vg0"}}
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: "n1"}}
	return Look(v, "n1", Facts[int]{})
}

func TestOnlyDataThatShouldGoIsAway(t *testing.T) {
	v := of("v")
	v.Lost = true
	if v.Away() {
		t.Error("data that is wanted is away")
	}
	v.Wish = nil
	if !v.Away() {
		t.Error("data that is not wanted is not away")
	}
}

func TestLostDataCanBeForgottenOnceItsObjectIsDeleted(t *testing.T) {
	v := of("pvc-1")
	if got := v.PoolIsAway("volume", "vg0"); got != "node n1: pool vg0 is not there, and volume pvc-1 cannot be removed from it: bring the pool back" {
		t.Error(got)
	}
	v.Object.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	if got := v.PoolIsAway("volume", "vg0"); !strings.HasSuffix(got, ": bring the pool back, or, if it is lost for good, `kubectl berth forget n1 pvc-1`") {
		t.Error(got)
	}
}

func TestAnObjectThatIsFinishedIsNotLookedAtThoughItsStepWouldBePossible(t *testing.T) {
	for verb, want := range map[decide.Verb]int{decide.None: 0, decide.Create: 1, decide.Report: 1} {
		rules := decide.Chain[view, Answer[v1alpha1.ReplicaStatus]]{{Then: func(view) Answer[v1alpha1.ReplicaStatus] { return To[v1alpha1.ReplicaStatus](verb) }}}
		kind := Kind[*v1alpha1.Volume, v1alpha1.ReplicaStatus, int]{
			Decide: rules.Decide, Records: func([]provision.Pool) map[string]*int { return nil }, Possible: func(view, []provision.Pool) bool { return true },
		}
		if got := kind.Stale([]*v1alpha1.Volume{of("v").Object}, "n1", nil, false); len(got) != want {
			t.Errorf("%s: %v", verb, got)
		}
	}
}
