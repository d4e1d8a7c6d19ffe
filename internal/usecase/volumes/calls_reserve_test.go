package volumes_test

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest/lagging"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/usecase/volumes"
	"berth.dev/berth/internal/usecase/volumetest"
)

func TestAReservationIsMarkedUntilItIsReturned(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		if _, err := s.Create(within(t), reservation("n")); err != nil || !s.volume().Reserved() {
			t.Fatalf("%v, reserved: %v", err, s.volume().Reserved())
		}
		if _, err := s.Create(within(t), request("n")); err != nil || s.volume().Reserved() {
			t.Errorf("%v, reserved: %v", err, s.volume().Reserved())
		}
		s.on("n")
		s.wroteOnly("create", "update")
	})
}

func TestAReservationThatCannotBePublishedIsNotReturned(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.first = s.drop // the reservation was deleted a moment ago
		if got, err := s.Create(within(t), request("n")); err == nil {
			t.Errorf("%+v was returned and is gone", got)
		}
	}, existing(wanted("n"), carved("n"), reserved))
}

func TestAReservationThatIsWrittenMeanwhileIsPublished(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.first = func() { s.change(func(v *v1alpha1.Volume) { v.Labels["team"] = "shop" }) }
		if _, err := s.Create(within(t), request("n")); err != nil {
			t.Error(err)
		}
		if v := s.volume(); v.Reserved() || v.Labels["team"] != "shop" {
			t.Errorf("reserved: %v, labels %v", v.Reserved(), v.Labels)
		}
	}, existing(wanted("n"), carved("n"), reserved))
}

func TestAReservationOnANodeThatIsAwayNowIsReturnedToNobody(t *testing.T) {
	for name, test := range map[string]struct {
		request volumes.Request
		on      string
		class   error
	}{
		"another node may have it":           {request("n", "m"), "m", nil},
		"no other node may have it":          {request("n"), "", volumes.ErrUnplaceable},
		"a scheduler wants to keep it there": {reservation("n"), "", volumes.ErrUnplaceable},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				s.agents["n"], s.nodes["n"] = nil, "is silent"
				got, err := s.Create(within(t), test.request)
				expect(t, err, test.class)
				s.on(test.on)
				if v := s.volume(); err != nil && !v.Reserved() || err == nil && (v.Reserved() || got.Nodes[0] != test.on) {
					t.Errorf("%+v, reserved: %v", got, v.Reserved())
				}
			}, existing(wanted("n"), carved("n"), reserved))
		})
	}
}

func TestAReservationThatItsNodeDidNotMakeStaysOne(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.agents["n"] = nil
		_, err := s.Create(within(t), request("n"))
		expect(t, err, provision.ErrInvalid)
		if !s.volume().Reserved() {
			t.Error("it is not collected any more")
		}
		s.wroteOnly()
	}, existing(wanted("n"), says("n", v1alpha1.ReplicaFailed, v1alpha1.ReasonInvalid, 0, gi), reserved))
}

func TestAReservationIsAbandonedByItsCSIName(t *testing.T) {
	v := existing(wanted("n"), carved("n"), reserved)
	v.Name, v.Spec.ClaimRef = v1alpha1.VolumeName("by-hand"), nil
	play(t, func(t *testing.T, s *stage) {
		s.name = v.Name
		expect(t, s.Abandon(within(t), "by-hand"), nil)
		s.on("")
	}, v)
}

func TestAReservationIsAbandoned(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		expect(t, s.Abandon(within(t), id), nil)
		s.on("")
		s.wroteOnly("update")
	}, existing(wanted("n"), carved("n"), reserved))
}

func TestAVolumeThatMayNotBeAbandonedStays(t *testing.T) {
	for name, volume := range map[string]*v1alpha1.Volume{
		"a call returned the volume to the user": existing(wanted("n"), carved("n")),
		"the volume is being deleted":            existing(wanted("n"), carved("n"), reserved, deleting),
		"the node has found data":                existing(wanted("n"), reserved, found("n")),
		"the node has not answered":              existing(wanted("n"), reserved),
		"the node is still copying":              existing(wanted("n"), reserved, says("n", v1alpha1.ReplicaCopying, v1alpha1.ReasonCopying, gi, gi)),
		"the node answered a smaller wish":       existing(wanted("n"), reserved, says("n", v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, gi, volumetest.Mi)),
		"the volume has no node":                 existing(reserved),
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				expect(t, s.Abandon(within(t), id), nil)
				s.wroteOnly()
			}, volume)
		})
	}
}

func TestAnAbandonedReservationThatIsUsedMeanwhileStays(t *testing.T) {
	publish := func(s *stage) { s.change(func(v *v1alpha1.Volume) { v.Annotations = nil }) }
	for name, prepare := range map[string]func(s *stage){
		"another call returned the volume, and the cache does not show the answer": func(s *stage) { s.Hold(); publish(s) },
		"another call returns the volume just before the write":                    func(s *stage) { s.first = func() { publish(s) } },
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(t *testing.T, s *stage) {
				prepare(s)
				expect(t, s.Abandon(within(t), id), nil)
				s.on("n")
			}, existing(wanted("n"), carved("n"), reserved))
		})
	}
}

func TestAReservationThatIsGoneIsAbandonedAlready(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.first = s.drop
		expect(t, s.Abandon(within(t), id), nil)
		expect(t, s.Abandon(within(t), id), nil)
	}, existing(wanted("n"), carved("n"), reserved))
}

func TestAReservationThatCannotBeWrittenIsAnError(t *testing.T) {
	play(t, func(t *testing.T, s *stage) {
		s.Server.Before = func(lagging.Write) error { return errBroken }
		expect(t, s.Abandon(within(t), id), errBroken)
		_, err := s.Create(within(t), request("n"))
		expect(t, err, errBroken)
	}, existing(wanted("n"), carved("n"), reserved))
}
