package volumes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/volumes"
	"berth.dev/berth/internal/usecase/volumetest"
)

var errBroken = errors.New("the API server is broken")

func TestADeletionWaitsForTheVolumesEnd(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.agents["n"] = nil
		ended := false
		later(func() {
			ended = true
			s.agents["n"] = carves
			s.answer()
		})
		expect(t, s.Delete(within(t), id), nil)
		if v := s.volume(); !ended || v != nil {
			t.Errorf("it waited: %v; %+v remains", ended, v)
		}
		s.wroteOnly("delete")
	}, existing(wanted("n"), carved("n")))
}

func TestTheAnswersOfItsNodesDecideHowADeletionEnds(t *testing.T) {
	for name, test := range map[string]struct {
		volume *v1alpha1.Volume
		away   string
		class  error
		writes []string
	}{
		"the device is open":       {existing(wanted("n"), says("n", v1alpha1.ReplicaFailed, v1alpha1.ReasonInUse, gi, gi)), "", provision.ErrInUse, []string{"delete"}},
		"the node is away":         {existing(wanted("n"), carved("n")), "is silent", nil, []string{"delete"}},
		"the node does not answer": {existing(wanted("n"), carved("n")), "", context.DeadlineExceeded, []string{"delete"}},
		"the volume is being deleted already, and the node is away": {existing(wanted("n"), carved("n"), deleting), "is silent", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.agents["n"], s.nodes["n"] = nil, test.away
				expect(t, s.Delete(within(t), id), test.class)
				if v := s.volume(); v == nil || v.DeletionTimestamp == nil {
					t.Errorf("the wish to delete is lost: %+v", v)
				}
				s.wroteOnly(test.writes...)
			}, test.volume)
		})
	}
}

func TestDeletingAMissingVolumeSucceeds(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		expect(t, s.Delete(within(t), id), nil)
		expect(t, s.Delete(within(t), "theirs"), nil)
		s.wroteOnly()
	})
}

func TestAVolumeThatTookTheNameOfADeletedOneStays(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.first = func() { s.drop(); s.make("m") }
		expect(t, s.Delete(within(t), id), volumes.ErrBusy)
		s.on("m")
		if v := s.volume(); v.DeletionTimestamp != nil {
			t.Error("it is being deleted")
		}
	}, existing(wanted("n"), carved("n")))
}

func TestADeletionThatLostToAnotherHasSucceeded(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.first = s.drop
		expect(t, s.Delete(within(t), id), nil)
		s.make("n")
		s.Server.Before = func(lagging.Write) error { return errBroken }
		expect(t, s.Delete(within(t), id), errBroken)
	}, existing(wanted("n"), carved("n")))
}

func TestAVolumeGrows(t *testing.T) {
	for name, prepare := range map[string]func(s *stage){
		"the node answers at once": func(*stage) {},
		"another client writes the volume meanwhile": func(s *stage) {
			s.first = func() { s.change(func(v *v1alpha1.Volume) { v.Labels["team"] = "shop" }) }
		},
		"the ledger has not heard of the larger size": func(s *stage) {
			s.change(func(v *v1alpha1.Volume) { v.Spec.Capacity = *bytes(2 * gi) })
			s.take("n", "vg", 9*gi)
			later(s.answer)
		},
		"the node answers later": func(s *stage) {
			s.agents["n"] = nil
			later(func() { s.agents["n"] = carves; s.answer() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				prepare(s)
				got, err := s.Expand(within(t), id, volumes.Size{Required: 2 * gi})
				if err != nil || got.Capacity != 2*gi || s.volume().Spec.Capacity.Value() != 2*gi {
					t.Errorf("%+v, %v; %s is wanted", got, err, s.volume().Spec.Capacity.String())
				}
			}, existing(wanted("n"), carved("n")))
		})
	}
}

func TestAVolumeThatDoesNotGrowKeepsItsSize(t *testing.T) {
	for name, test := range map[string]struct {
		agent  agent
		id     string
		size   volumes.Size
		spec   int64
		class  error
		writes []string
	}{
		"the volume has the size already":     {agent: carves, size: volumes.Size{Required: gi}, spec: gi},
		"the volume is larger than the limit": {agent: carves, size: volumes.Size{Limit: volumetest.Mi, Required: volumetest.Mi}, spec: gi, class: volumes.ErrOutOfRange},
		"the ledger has no room for the size": {agent: carves, size: volumes.Size{Required: 100 * gi}, spec: gi, class: volumes.ErrOutOfRange},
		"the size is negative":                {agent: carves, size: volumes.Size{Required: -1}, spec: gi, class: provision.ErrInvalid},
		"the volume does not exist":           {agent: carves, id: "pvc-none", size: volumes.Size{Required: 2 * gi}, spec: gi, class: provision.ErrNotFound},
		"the name is foreign":                 {agent: carves, id: "theirs", size: volumes.Size{Required: 2 * gi}, spec: gi, class: provision.ErrNotFound},
		"the node has no room":                {agent: refusesToGrow, size: volumes.Size{Required: 2 * gi}, spec: 2 * gi, class: volumes.ErrOutOfRange, writes: []string{"update"}},
		"the node does not answer":            {size: volumes.Size{Required: 2 * gi}, spec: 2 * gi, class: context.DeadlineExceeded, writes: []string{"update"}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.agents["n"] = test.agent
				name := test.id
				if name == "" {
					name = id
				}
				_, err := s.Expand(within(t), name, test.size)
				expect(t, err, test.class)
				if got := s.volume().Spec.Capacity.Value(); got != test.spec {
					t.Errorf("%d is wanted, want %d", got, test.spec)
				}
				s.wroteOnly(test.writes...)
			}, existing(wanted("n"), carved("n")))
		})
	}
}

// refusesToGrow is an agent whose pool is full: the replica stays as it is.
func refusesToGrow(v *v1alpha1.Volume) v1alpha1.ReplicaStatus {
	r := v.Spec.Replicas[0]
	return v1alpha1.ReplicaStatus{
		Node: r.Node, Pool: r.Pool, State: v1alpha1.ReplicaReady, Ready: true, Reason: v1alpha1.ReasonNoSpace, Message: "because",
		Capacity: bytes(gi), Requested: &v.Spec.Capacity,
	}
}

func TestAVolumeThatGoesWhileItGrowsIsNotReturned(t *testing.T) {
	for name, prepare := range map[string]func(s *stage){
		"another client deletes the volume before the write":       func(s *stage) { s.first = s.drop },
		"another client deletes the volume after the write":        func(s *stage) { s.agents["n"] = nil; later(s.drop) },
		"the volume is gone, and the cache still shows the volume": func(s *stage) { s.Hold(); s.drop() },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				prepare(s)
				if got, err := s.Expand(within(t), id, volumes.Size{Required: 2 * gi}); err == nil {
					t.Errorf("%+v was returned", got)
				}
			}, existing(wanted("n"), carved("n")))
		})
	}
}

func TestANodeThatFallsSilentIsNotWaitedFor(t *testing.T) {
	for name, test := range map[string]struct {
		said  volumetest.Option
		class error
	}{
		"the node has not answered": {carved("n"), provision.ErrUnavailable},
		"the node has refused":      {says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonNoSpace, gi, 2*gi), volumes.ErrOutOfRange},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.agents["n"], s.nodes["n"] = nil, "is silent"
				_, err := s.Expand(within(t), id, volumes.Size{Required: 2 * gi})
				expect(t, err, test.class)
				s.wroteOnly()
			}, existing(wanted("n"), test.said, func(v *v1alpha1.Volume) { v.Spec.Capacity = *bytes(2 * gi) }))
		})
	}
}

func TestAVolumeThatIsLargeEnoughWaitsForNoNode(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.agents["n"] = nil
		if got, err := s.Expand(within(t), id, volumes.Size{Required: 2 * gi}); err != nil || got.Capacity != 2*gi {
			t.Errorf("%+v, %v", got, err)
		}
		s.wroteOnly()
	}, existing(wanted("n"), says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, 2*gi, gi/2)))
}

func TestAVolumeThatCannotBeWrittenDoesNotGrow(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.Server.Before = func(lagging.Write) error { return errBroken }
		_, err := s.Expand(within(t), id, volumes.Size{Required: 2 * gi})
		expect(t, err, errBroken)
	}, existing(wanted("n"), carved("n")))
}

func TestAVolumeThatIsNotMadeYetIsNotReturned(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.agents["n"] = nil
		later(func() { s.agents["n"] = carves; s.answer() })
		if got, err := s.Expand(within(t), id, volumes.Size{}); err != nil || got.Capacity != gi {
			t.Errorf("%+v, %v", got, err)
		}
	}, existing(wanted("n")))
}

func TestAVolumeIsNotPromisedMoreInAPoolThatTakesNothingNew(t *testing.T) {
	unhealthy := storageNode("n")
	unhealthy.Status.Pools[0].Health = v1alpha1.PoolMissing
	play(t, func(t *testing.T, s *stage) {
		_, err := s.Expand(within(t), id, volumes.Size{Required: 2 * gi})
		expect(t, err, provision.ErrUnavailable)
		s.wroteOnly()
	}, existing(wanted("n"), carved("n")), unhealthy)
}

func TestAVolumeIsNotPromisedMoreOnANodeThatIsAway(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.nodes["n"] = "is silent" // and the ledger has not heard of it: no size is final
		_, err := s.Expand(within(t), id, volumes.Size{Required: 100 * gi})
		expect(t, err, provision.ErrUnavailable)
		s.wroteOnly()
	}, existing(wanted("n"), carved("n")))
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, volumetest.Nodes{"n": "is silent", "m": ""}, existing(wanted("n"), carved("n")))
		_, err := s.Expand(within(t), id, volumes.Size{Required: 2 * gi})
		expect(t, err, provision.ErrUnavailable)
		s.wroteOnly()
	})
}
