package luns

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
)

// lets is what the reconciler of Volumes does: one that is being deleted goes, unless it awaits its LUN.
func lets(t *testing.T, s *lagging.Server) {
	t.Helper()
	l := read(t, s)
	for i := range l.volumes {
		v := &l.volumes[i]
		if v.DeletionTimestamp == nil || Awaits(v, l.luns) || !controllerutil.RemoveFinalizer(v, v1alpha1.VolumeFinalizer) {
			continue
		}
		if err := s.Others().Update(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
}

// The claim is deleted before or after each write of the call that makes its volume, and the Volume with it, which goes
// at once if nothing holds it.
func TestAClaimThatIsDeletedHalfwayCostsNoLUN(t *testing.T) {
	for _, goes := range []bool{false, true} {
		for when := range 8 {
			t.Run(fmt.Sprintf("at step %d, goes at once %v", when, goes), func(t *testing.T) {
				s := lagging.New(t, lun("a", gi, func(l *v1alpha1.LUN) { l.Spec.Persistent = true }))
				step, deleted := 0, false
				strike := func(lagging.Write) error {
					if step++; step <= when || deleted {
						return nil
					}
					l := read(t, s)
					if len(l.volumes) == 0 {
						return nil
					}
					deleted = true
					if err := s.Others().Delete(t.Context(), &l.volumes[0]); err != nil {
						t.Error(err)
					}
					if goes {
						lets(t, s)
					}
					return nil
				}
				s.Before, s.After = strike, strike
				_, err := service(s, s.Client()).Create(t.Context(), claim(1))
				s.Before, s.After = nil, nil
				for range 3 {
					read(t, s).settled(t, s)
					lets(t, s)
				}
				l := read(t, s)
				for i := range l.volumes { // the call may have made the volume anew
					l.consistent(t)
					if err != nil || !l.luns[0].Has(&l.volumes[i]) {
						t.Errorf("Volume %+v has no LUN: %v", client.ObjectKeyFromObject(&l.volumes[i]), err)
					}
				}
				if got := l.luns[0].Status; len(l.volumes) == 0 && got.State != v1alpha1.LUNAvailable {
					t.Errorf("the LUN is %s: %s", got.State, got.Message)
				}
			})
		}
	}
}
