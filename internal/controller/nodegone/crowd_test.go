package nodegone

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// on is a Volume of a node, with a mark of that age; no mark if the reason is empty.
func on(node string, status metav1.ConditionStatus, reason string, age time.Duration) v1alpha1.Volume {
	v := volume()
	v.Spec.Replicas[0].Node = node
	if reason != "" {
		v.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionNodeGone, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(start.Add(-age))}}
	}
	return *v
}

func TestWhichNodesAreOneOfACrowd(t *testing.T) {
	due := func(v *v1alpha1.Volume) bool { return v.Spec.PoolClass == "releasing" }
	releasing := func(v v1alpha1.Volume) v1alpha1.Volume { v.Spec.PoolClass = "releasing"; return v }
	for name, tc := range map[string]struct {
		volume v1alpha1.Volume
		counts bool
	}{
		"a changed class releases the claims of the node now": {releasing(on("x", yes, v1alpha1.ReasonClaimKept, 100*hour)), true},
		"the node's claims were released and made again":      {releasing(on("x", yes, v1alpha1.ReasonClaimReleased, 100*hour)), false},
		"the node was just deleted":                           {on("x", "", "", 0), true},
		"the node's claims wait for their release":            {on("x", yes, v1alpha1.ReasonReleasePending, 100*hour), true},
		"the node's claims are being released":                {on("x", yes, v1alpha1.ReasonReleasingClaim, 100*hour), true},
		"the node was gone in an earlier crowd":               {on("x", unknown, v1alpha1.ReasonTooManyNodesGone, 100*hour), true},
		"the node returned and is gone again":                 {on("x", no, v1alpha1.ReasonNodeReturned, 100*hour), true},
		"the node's claims were released 23 hours ago":        {on("x", yes, v1alpha1.ReasonClaimReleased, 23*hour), true},
		"the node's claims were released a day ago":           {on("x", yes, v1alpha1.ReasonClaimReleased, 24*hour), false},
		"the node's claims have been kept for 23 hours":       {on("x", yes, v1alpha1.ReasonClaimKept, 23*hour), true},
		"the node's claims have been kept for a day":          {on("x", yes, v1alpha1.ReasonClaimKept, 24*hour), false},
		"the node exists":                                     {on("present", yes, v1alpha1.ReasonReleasePending, hour), false},
	} {
		t.Run(name, func(t *testing.T) {
			got := CrowdOf([]v1alpha1.Volume{tc.volume, tc.volume}, map[string]bool{"present": true}, start, due)
			want := Crowd{Known: 1}
			if tc.counts {
				want = Crowd{Gone: 1, Known: 2}
			}
			if got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

func TestHowManyNodesMayBeGone(t *testing.T) {
	for crowd, tooMany := range map[Crowd]bool{
		{1, 1}: true, {1, 2}: false, {2, 3}: true, {2, 4}: false, {3, 5}: true, {3, 6}: false, {3, 1000}: false, {4, 1000}: true, {0, 3}: false,
	} {
		t.Run(fmt.Sprintf("%d of %d", crowd.Gone, crowd.Known), func(t *testing.T) {
			if crowd.tooMany() != tooMany {
				t.Errorf("too many: %v", crowd.tooMany())
			}
		})
	}
}
