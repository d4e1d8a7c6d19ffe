package engine_test

import (
	"context"
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

func TestAUnitIsMadeReadyBeforeItIsPlannedFor(t *testing.T) {
	s := newShelf(t, false)
	c, ready := s.put("new", func() error { return nil }), false
	plan := c.Plan
	c.Plan = func(b *box, fresh bool) ([]engine.Step[*box], error) {
		if !ready {
			return nil, errStuck
		}
		return plan(b, fresh)
	}
	c.Prepare = func(context.Context) (bool, error) { ready = true; return true, nil }
	if err := s.CarryOut(t.Context(), c); err != nil {
		t.Error(err)
	}
	c.Prepare = func(context.Context) (bool, error) { t.Error("it is made ready for nothing"); return false, nil }
	if err := s.CarryOut(t.Context(), c); err != nil {
		t.Error(err)
	}
}

func TestAStepIsTakenAgainOnceTheUnitIsMadeReadyAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		changed bool
		tries   int
	}{
		"the unit was ready":     {false, 1},
		"the unit was not ready": {true, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t, false)
			tries := 0
			c := s.put("new", func() error { tries++; return errStuck })
			c.Prepare = func(context.Context) (bool, error) { return tc.changed, nil }
			if err := s.CarryOut(t.Context(), c); !errors.Is(err, errStuck) || tries != tc.tries {
				t.Errorf("%v after %d tries, want %d", err, tries, tc.tries)
			}
		})
	}
}

func TestNoStepIsTakenInAUnitThatCannotBeMadeReady(t *testing.T) {
	s := newShelf(t, false)
	c := s.put("new", func() error { t.Error("the step was taken"); return nil })
	c.Prepare = func(context.Context) (bool, error) { return false, errStuck }
	if err := s.CarryOut(t.Context(), c); !errors.Is(err, errStuck) {
		t.Error(err)
	}
	c.Prepare = func(context.Context) (bool, error) { return true, nil }
	c.Plan = func(*box, bool) ([]engine.Step[*box], error) { return nil, provision.ErrNoSpace }
	if err := s.CarryOut(t.Context(), c); !errors.Is(err, provision.ErrNoSpace) {
		t.Error(err)
	}
}
