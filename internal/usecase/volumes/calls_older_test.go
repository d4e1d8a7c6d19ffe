package volumes_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/volumes"
)

// found is the answer of a node that had data of the volume's name before it was asked.
func found(node string) func(*v1alpha1.Volume) {
	return says(node, v1alpha1.ReplicaReady, v1alpha1.ReasonFound, gi, gi)
}

func TestNoVolumeIsMadeWhileANodeKeepsDataOfItsName(t *testing.T) {
	keeps := storageNode("m")
	keeps.Status.Pools[0].Inventory = []v1alpha1.InventoryItem{{
		Volume: id, Allocated: *bytes(gi), Orphan: &v1alpha1.Orphan{Since: metav1.Unix(1, 0), Reason: v1alpha1.OrphanNoObject, Size: *bytes(gi)},
	}}
	for command, claim := range map[string]*v1alpha1.ClaimReference{
		"`kubectl berth adopt m " + id + " --claim shop/data`": {Namespace: "shop", Name: "data"},
		"`kubectl berth adopt m " + id + "`":                   nil,
	} {
		play(t, func(t *testing.T, s *stage) {
			r := request("n")
			r.Claim = claim
			_, err := s.Create(within(t), r)
			expect(t, err, provision.ErrConflict)
			if err != nil && !strings.Contains(err.Error(), command) {
				t.Errorf("%q does not tell of %s", err, command)
			}
			s.wroteOnly()
		}, keeps)
	}
}

func TestAVolumeThatMayHaveDataOnItsNodeIsNotMoved(t *testing.T) {
	for name, volume := range map[string]*v1alpha1.Volume{
		"the node has found data":                  existing(wanted("n"), found("n")),
		"the node has found foreign data":          existing(wanted("n"), says("n", v1alpha1.ReplicaFailed, v1alpha1.ReasonConflict, 0, gi)),
		"an earlier node has found data":           existing(wanted("n"), carved("n"), found("far")),
		"the volume was adopted":                   existing(wanted("n"), carved("n"), func(v *v1alpha1.Volume) { v.Spec.Adopted = true }),
		"the node has found data of a reservation": existing(wanted("n"), found("n"), reserved),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.agents["n"] = nil // the node has answered already
				_, err := s.Create(within(t), request("m"))
				expect(t, err, provision.ErrConflict)
				s.on("n")
				s.wroteOnly()
			}, volume)
		})
	}
}

// The StorageClass was made anew with other parameters while the claim waited.
func TestAVolumeThatWasNeverCarvedMakesWayForAnotherShape(t *testing.T) {
	shaped := func(v *v1alpha1.Volume) { v.Spec.MkfsOptions = "-I 512" }
	for name, test := range map[string]struct {
		volume *v1alpha1.Volume
		class  error
	}{
		"it has no node":       {existing(shaped), nil},
		"its node has refused": {existing(shaped, wanted("n"), full("n")), nil},
		"it is carved":         {existing(shaped, wanted("n"), carved("n")), provision.ErrConflict},
		"it was adopted":       {existing(shaped, func(v *v1alpha1.Volume) { v.Spec.Adopted = true }), provision.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				if volumes.Carved(test.volume) {
					s.agents["n"] = nil // the node has answered already
				}
				_, err := s.Create(within(t), request("n"))
				expect(t, err, test.class)
				if made := s.volume().Spec.MkfsOptions == ""; made != (test.class == nil) {
					t.Errorf("it has the new shape: %v", made)
				}
			}, test.volume)
		})
	}
}

func TestAReservationOfAnotherShapeMakesWay(t *testing.T) {
	larger := request("n")
	larger.Size.Required = 2 * gi
	for name, test := range map[string]struct {
		prepare func(s *stage)
		class   error
		spec    int64
		writes  []string
	}{
		"the node removes the reservation":                                      {func(*stage) {}, nil, 2 * gi, []string{"delete", "create"}},
		"another client has just deleted the reservation":                       {func(s *stage) { s.first = s.drop }, nil, 2 * gi, []string{"delete", "create"}},
		"another client has just deleted the reservation, and the node is away": {func(s *stage) { s.nodes["n"], s.first = "is silent", s.drop }, volumes.ErrUnplaceable, 0, []string{"delete"}},
		"the node does not answer":                                              {func(s *stage) { s.agents["n"] = nil }, context.DeadlineExceeded, gi, []string{"delete"}},
		"the node is away":                                                      {func(s *stage) { s.agents["n"], s.nodes["n"] = nil, "is silent" }, volumes.ErrBusy, gi, []string{"delete"}},
		"another call returns the reservation to the user":                      {func(s *stage) { s.first = func() { s.change(func(v *v1alpha1.Volume) { v.Annotations = nil }) } }, provision.ErrConflict, gi, []string{"delete"}},
		"the node has found data": {func(s *stage) {
			s.agents["n"] = nil
			s.change(func(v *v1alpha1.Volume) { v.Status.Replicas[0].Reason = v1alpha1.ReasonFound })
		}, provision.ErrConflict, gi, nil},
		"a new volume takes the name": {func(s *stage) { s.first = func() { s.drop(); s.make("n") } }, provision.ErrConflict, gi, []string{"delete"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				test.prepare(s)
				_, err := s.Create(within(t), larger)
				expect(t, err, test.class)
				var got int64
				if v := s.volume(); v != nil {
					got = v.Spec.Capacity.Value()
				}
				if got != test.spec {
					t.Errorf("there is a volume of %d, want %d", got, test.spec)
				}
				s.wroteOnly(test.writes...)
			}, existing(wanted("n"), carved("n"), reserved))
		})
	}
}
