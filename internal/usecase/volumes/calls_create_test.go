package volumes_test

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/volumes"
)

func TestAVolumeIsMadeByOneWrite(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		got, err := s.Create(within(t), request("n"))
		if err != nil || got.ID != id || got.Capacity != gi || !slices.Equal(got.Nodes, []string{"n"}) {
			t.Errorf("%+v, %v", got, err)
		}
		s.wroteOnly("create")
		v := s.volume()
		if _, labelled := v.Labels[v1alpha1.ReplicaLabel("n")]; !labelled || !slices.Equal(v.Finalizers, []string{v1alpha1.VolumeFinalizer}) {
			t.Errorf("labels %v, finalizers %v", v.Labels, v.Finalizers)
		}
		if string(v.Spec.ClaimRef.UID) != id[len("pvc-"):] || v.Reserved() {
			t.Errorf("claim %+v, reserved: %v", v.Spec.ClaimRef, v.Reserved())
		}
	})
}

// wroteOnly fails the test unless these are the verbs of the Service's writes.
func (s *stage) wroteOnly(verbs ...string) {
	s.t.Helper()
	if diff := cmp.Diff(verbs, s.wrote); diff != "" {
		s.t.Errorf("writes: %s", diff)
	}
}

// make creates the Volume as another process does, on a node that has it.
func (s *stage) make(node string) {
	s.t.Helper()
	v := existing(wanted(node))
	v.ResourceVersion, v.UID = "", ""
	s.must(s.Others().Create(s.t.Context(), v))
	s.answer()
}

func TestCreateGoesOnFromTheExistingObject(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(s *stage)
		writes  []string
	}{
		"the cache shows the volume": {func(s *stage) { s.make("n") }, nil},
		"the cache does not show the volume yet": {func(s *stage) {
			s.Hold()
			s.make("n")
			later(s.Advance)
		}, []string{"create"}},
		"another process is faster": {func(s *stage) {
			s.first = func() { s.make("n") }
		}, []string{"create"}},
		"the node answers while the call waits": {func(s *stage) {
			s.agents["n"] = nil
			s.make("n")
			later(func() { s.agents["n"] = carves; s.answer() })
		}, nil},
		"the volume is gone, and the cache still shows the volume": {func(s *stage) {
			s.make("n")
			s.Hold()
			s.drop()
			later(s.Advance)
		}, []string{"create"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				test.prepare(s)
				got, err := s.Create(within(t), request("n"))
				if err != nil || got.Capacity != gi {
					t.Errorf("%+v, %v", got, err)
				}
				s.on("n")
				s.wroteOnly(test.writes...)
			})
		})
	}
}

func TestAnExistingVolumeThatDiffersFromTheRequestIsLeftAlone(t *testing.T) {
	for name, test := range map[string]struct {
		volume *v1alpha1.Volume
		change func(r *volumes.Request)
		class  error
	}{
		"the volume is being deleted": {existing(wanted("n"), carved("n"), deleting), func(*volumes.Request) {}, volumes.ErrBusy},
		"the volume is too small":     {existing(wanted("n"), carved("n")), func(r *volumes.Request) { r.Size.Required = 2 * gi }, provision.ErrConflict},
		"the volume belongs to another claim": {existing(wanted("n"), carved("n")), func(r *volumes.Request) {
			r.Claim = &v1alpha1.ClaimReference{Namespace: "theirs", Name: "data"}
		}, provision.ErrConflict},
		"the volume is a copy": {existing(wanted("n"), carved("n"), func(v *v1alpha1.Volume) { v.Spec.Source = &v1alpha1.VolumeSource{Volume: "pvc-2"} }), func(*volumes.Request) {}, provision.ErrConflict},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				r := request("m")
				test.change(&r)
				_, err := s.Create(within(t), r)
				expect(t, err, test.class)
				s.on("n")
				s.wroteOnly()
			}, test.volume)
		})
	}
}

func TestAVolumeThatGoesWhileItIsMadeIsNotReturned(t *testing.T) {
	for name, test := range map[string]struct {
		node    string
		objects []client.Object
	}{
		"a new volume":                           {"n", nil},
		"a volume that is to leave the node":     {"m", []client.Object{existing(wanted("n"))}},
		"a volume that is to return to the node": {"n", []client.Object{existing(carved("n"))}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.agents["n"] = nil
				later(s.drop)
				_, err := s.Create(within(t), request(test.node))
				expect(t, err, volumes.ErrBusy)
			}, test.objects...)
		})
	}
}

func TestANodeThatDoesNotTakeTheVolumeIsLeft(t *testing.T) {
	for name, test := range map[string]struct {
		n, m    agent
		silent  bool
		allowed []string
		class   error
		on      string
	}{
		"another node takes the volume": {n: refuses(v1alpha1.ReasonNoSpace), m: carves, allowed: []string{"n", "m"}, on: "m"},
		"no other node is allowed":      {n: refuses(v1alpha1.ReasonNoSpace), m: carves, allowed: []string{"n"}, class: volumes.ErrUnplaceable},
		"all nodes refuse the volume":   {n: refuses(v1alpha1.ReasonNoSpace), m: refuses(v1alpha1.ReasonPoolMissing), allowed: []string{"n", "m"}, class: volumes.ErrUnplaceable},
		"the node falls silent":         {m: carves, silent: true, allowed: []string{"n", "m"}, on: "m"},
		"the node fails for good":       {n: refuses(v1alpha1.ReasonInvalid), m: carves, allowed: []string{"n", "m"}, class: provision.ErrInvalid, on: "n"},
		"the node does not answer":      {m: carves, allowed: []string{"n", "m"}, class: context.DeadlineExceeded, on: "n"},
		"the node fails for now":        {n: refuses(v1alpha1.ReasonProvisionerError), m: carves, allowed: []string{"n", "m"}, class: provision.ErrUnavailable, on: "n"},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.agents["n"], s.agents["m"] = test.n, test.m
				if test.silent {
					s.first = func() { s.nodes["n"] = "is silent" }
				}
				r := request(test.allowed...)
				r.Topology.Preferred = []string{"n"}
				_, err := s.Create(within(t), r)
				expect(t, err, test.class)
				s.on(test.on)
			})
		})
	}
}

func TestASecondCallForAVolumeIsBusy(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, s *stage) error{
		"create": func(ctx context.Context, s *stage) error { _, err := s.Create(ctx, request("n")); return err },
		"delete": func(ctx context.Context, s *stage) error { return s.Delete(ctx, id) },
		"expand": func(ctx context.Context, s *stage) error {
			_, err := s.Expand(ctx, id, volumes.Size{Required: 2 * gi})
			return err
		},
		"abandon": func(ctx context.Context, s *stage) error { return s.Abandon(ctx, id) },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.agents["n"] = nil
				var second error
				later(func() {
					second = call(t.Context(), s)
					s.agents["n"] = carves
					s.answer()
				})
				if _, err := s.Create(within(t), request("n")); err != nil {
					t.Error(err)
				}
				expect(t, second, volumes.ErrBusy)
				for range 2 { // the lock is free again
					expect(t, call(within(t), s), nil)
				}
				s.wroteOnce("create")
			})
		})
	}
}

// wroteOnce fails the test unless the Service has begun with a write and has not
// repeated it.
func (s *stage) wroteOnce(verb string) {
	s.t.Helper()
	if len(s.wrote) == 0 || s.wrote[0] != verb || slices.Contains(s.wrote[1:], verb) {
		s.t.Errorf("writes: %v", s.wrote)
	}
}
