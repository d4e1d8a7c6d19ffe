package wire

import (
	"testing"

	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/internal/driver"
	"berth.dev/berth/scheduler/internal/plugin"
)

func TestRoomThatComesFreeDuringASimulationWakesPodsWhenItIsOver(t *testing.T) {
	s := newStation(t)
	waits := podOf("waits", "one")
	s.refuse(t, waits)

	nodeOf(t, s.ledger, "n1", 4*gi)
	member := podOf("member", "two")
	p := &plugin.Plugin{Driver: driver.Local(), Book: s.ledger, Reader: reader{}, Refusals: s.refusals}
	state := framework.NewCycleState()
	state.SetPodGroupSchedulingCycle(framework.NewCycleState())
	if _, status := p.PreFilter(t.Context(), state, member, nil); !status.IsSuccess() {
		t.Fatal(status)
	}
	if status := p.Reserve(t.Context(), state, member, "n1"); !status.IsSuccess() {
		t.Fatal(status)
	}
	s.freed("n1")
	s.lookIfDue(t)
	if one, _ := s.woken(); one != nil {
		t.Errorf("%v is woken while the room is held", one)
	}

	p.Unreserve(t.Context(), state, member, "n1")
	s.lookIfDue(t)
	if one, _ := s.woken(); len(one) != 1 {
		t.Errorf("woken are %v, want the pod that waits", one)
	}
	s.lookIfDue(t)
	if one, two := s.woken(); one != nil || two != nil {
		t.Errorf("%v and %v are woken again for the same room", one, two)
	}
}

func TestTheEndOfASimulationAloneWakesNoPod(t *testing.T) {
	s := newStation(t)
	nodeOf(t, s.ledger, "n1", 4*gi)
	first, second := podOf("first", "one"), podOf("second", "one")
	p := &plugin.Plugin{Driver: driver.Local(), Book: s.ledger, Reader: reader{}, Refusals: s.refusals}
	for range 3 { // two that do not fit together must not keep the scheduler busy
		state := framework.NewCycleState()
		state.SetPodGroupSchedulingCycle(framework.NewCycleState())
		if _, status := p.PreFilter(t.Context(), state, first, nil); !status.IsSuccess() {
			t.Fatal(status)
		}
		if status := p.Reserve(t.Context(), state, first, "n1"); !status.IsSuccess() {
			t.Fatal(status)
		}
		s.refuse(t, second)
		p.Unreserve(t.Context(), state, first, "n1")
		s.lookIfDue(t)
		if one, _ := s.woken(); one != nil {
			t.Fatalf("%v is woken, and would be again and again", one)
		}
	}
}

// lookIfDue does the same as run when the waker is due.
func (s *station) lookIfDue(t *testing.T) {
	t.Helper()
	select {
	case <-s.due:
		s.look(t.Context())
	default:
	}
}
