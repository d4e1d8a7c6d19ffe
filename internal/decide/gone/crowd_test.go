package gone

import (
	"fmt"
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/gone/gonetest"
)

func TestWhichNodesAreOneOfACrowd(t *testing.T) {
	due := func(v *v1alpha1.Volume) bool { return v.Spec.PoolClass == "releasing" }
	releasing := func(v v1alpha1.Volume) v1alpha1.Volume { v.Spec.PoolClass = "releasing"; return v }
	for name, tc := range map[string]struct {
		volume v1alpha1.Volume
		counts bool
	}{
		"a changed class releases the claims of the node now": {releasing(gonetest.On("x", yes, v1alpha1.ReasonClaimKept, 100*hour)), true},
		"the node's claims were released and made again":      {releasing(gonetest.On("x", yes, v1alpha1.ReasonClaimReleased, 100*hour)), false},
		"the node was just deleted":                           {gonetest.On("x", "", "", 0), true},
		"the node's claims wait for their release":            {gonetest.On("x", yes, v1alpha1.ReasonReleasePending, 100*hour), true},
		"the node's claims are being released":                {gonetest.On("x", yes, v1alpha1.ReasonReleasingClaim, 100*hour), true},
		"the node was gone in an earlier crowd":               {gonetest.On("x", unknown, v1alpha1.ReasonTooManyNodesGone, 100*hour), true},
		"the node returned and is gone again":                 {gonetest.On("x", no, v1alpha1.ReasonNodeReturned, 100*hour), true},
		"the node's claims were released 23 hours ago":        {gonetest.On("x", yes, v1alpha1.ReasonClaimReleased, 23*hour), true},
		"the node's claims were released a day ago":           {gonetest.On("x", yes, v1alpha1.ReasonClaimReleased, 24*hour), false},
		"the node's claims have been kept for 23 hours":       {gonetest.On("x", yes, v1alpha1.ReasonClaimKept, 23*hour), true},
		"the node's claims have been kept for a day":          {gonetest.On("x", yes, v1alpha1.ReasonClaimKept, 24*hour), false},
		"the node exists":                                     {gonetest.On("present", yes, v1alpha1.ReasonReleasePending, hour), false},
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
