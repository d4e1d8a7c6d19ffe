package volumes_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/volumes"
	"berth.dev/berth/internal/usecase/volumetest"
)

func TestAVolumeIsMovedToWhereItIsAskedFor(t *testing.T) {
	for name, volume := range map[string]*v1alpha1.Volume{
		"the node has refused the volume":          existing(wanted("n"), full("n")),
		"the volume has no node":                   existing(),
		"no PersistentVolume refers to the volume": existing(wanted("n"), carved("n")),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				if !volumes.Carved(volume) {
					s.unread = &corev1.PersistentVolume{} // there is no data that one could refer to
				}
				got, err := s.Create(within(t), request("m"))
				if err != nil || len(got.Nodes) != 1 || got.Nodes[0] != "m" {
					t.Errorf("%+v, %v", got, err)
				}
				s.on("m")
			}, volume)
		})
	}
}

func TestAVolumeThatAPersistentVolumeRefersToStaysWhereItIs(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.Hold() // the cache does not show it yet
		s.must(s.Others().Create(t.Context(), persistentVolume()))
		_, err := s.Create(within(t), request("m"))
		expect(t, err, provision.ErrConflict)
		s.on("n")
		s.wroteOnly()
	}, existing(wanted("n"), carved("n")))
}

func TestAVolumeIsTakenOffNoNodeThatHasNotAnswered(t *testing.T) {
	t.Run("the node never answers", func(t *testing.T) {
		play(t, func(t *testing.T, s *stage) {
			s.agents["n"] = nil
			_, err := s.Create(within(t), request("m"))
			expect(t, err, context.DeadlineExceeded)
			s.on("n")
			s.wroteOnly()
		}, existing(wanted("n")))
	})
	t.Run("the node answers that the volume is carved", func(t *testing.T) {
		play(t, func(t *testing.T, s *stage) {
			s.agents["n"] = nil
			s.must(s.Others().Create(t.Context(), persistentVolume()))
			later(func() { s.agents["n"] = carves; s.answer() })
			_, err := s.Create(within(t), request("m"))
			expect(t, err, provision.ErrConflict)
			s.on("n")
		}, existing(wanted("n")))
	})
	t.Run("the node is away", func(t *testing.T) {
		play(t, func(t *testing.T, s *stage) {
			s.agents["n"], s.nodes["n"] = nil, "is silent"
			_, err := s.Create(within(t), request("m"))
			expect(t, err, nil)
			s.on("m")
			if _, labelled := s.volume().Labels[v1alpha1.ReplicaLabel("n")]; !labelled {
				t.Error("the label of a node that may have something is gone")
			}
		}, existing(wanted("n")))
	})
}

func TestTheAnswerOfANodeCountsThoughItIsAwayNow(t *testing.T) {
	for name, test := range map[string]struct {
		said  volumetest.Option
		class error
	}{
		"the node has the volume":             {carved("n"), nil},
		"the node will never have the volume": {says("n", v1alpha1.ReplicaFailed, v1alpha1.ReasonInvalid, 0, gi), provision.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.agents["n"], s.nodes["n"] = nil, "is silent"
				_, err := s.Create(within(t), request("n", "m"))
				expect(t, err, test.class)
				s.on("n")
				s.wroteOnly()
			}, existing(wanted("n"), test.said))
		})
	}
}

func TestAWriteThatLostIsJudgedAfresh(t *testing.T) {
	t.Run("the node has taken the volume after all", func(t *testing.T) {
		play(t, func(t *testing.T, s *stage) {
			s.agents["n"] = refuses(v1alpha1.ReasonNoSpace)
			s.make("n")
			s.first = func() { s.agents["n"] = carves; s.answer() } // before it is taken off
			got, err := s.Create(within(t), request("n"))
			if err != nil || len(got.Nodes) != 1 || got.Nodes[0] != "n" {
				t.Errorf("%+v, %v", got, err)
			}
			s.on("n")
		})
	})
	t.Run("the volume is gone", func(t *testing.T) {
		play(t, func(t *testing.T, s *stage) {
			s.first = s.drop
			_, err := s.Create(within(t), request("m"))
			if err == nil || s.volume() != nil {
				t.Errorf("got %v, and there is %v", err, s.volume())
			}
		}, existing(wanted("n"), carved("n")))
	})
	t.Run("the volume was replaced", func(t *testing.T) {
		play(t, func(t *testing.T, s *stage) {
			s.first = func() { s.drop(); s.make("n") }
			_, err := s.Create(within(t), request("m"))
			expect(t, err, nil)
			s.on("m")
		}, existing(wanted("n"), carved("n")))
	})
}

func TestAVolumeGoesBackToANodeOnceItsOldReportIsDropped(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.agents["n"] = nil
		later(func() {
			s.on("")
			s.agents["n"] = carves
			s.answer()
		})
		got, err := s.Create(within(t), request("n"))
		if err != nil || got.Capacity != gi {
			t.Errorf("%+v, %v", got, err)
		}
		s.on("n")
	}, existing(carved("n")))
}
