package staging

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// awaitedError is an answer of a register whose change will be known.
type awaitedError struct{ changed chan struct{} }

func (awaitedError) Error() string              { return errElsewhere.Error() }
func (awaitedError) Unwrap() error              { return errElsewhere }
func (e awaitedError) Changed() <-chan struct{} { return e.changed }

func TestAStageWaitsForAVolumeThatAnotherNodeHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, r := registered(t, "ext4")
		elsewhere := awaitedError{make(chan struct{})}
		r.refuses = elsewhere
		begun, done := time.Now(), make(chan error)
		go func() { done <- n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage-" + id)}) }()
		synctest.Wait()
		if end, err := n.begin(id); err != nil {
			t.Errorf("other calls are not admitted meanwhile: %v", err)
		} else {
			end()
		}
		r.refuses = nil
		close(elsewhere.changed)
		if err := <-done; err != nil || !r.taken || time.Since(begun) != 0 {
			t.Errorf("staged after %v: %v, taken %v", time.Since(begun), err, r.taken)
		}
	})
}

func TestAStageAsksAgainWithoutAWordOfAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, r := registered(t, "ext4")
		begun := time.Now()
		r.refusing = func() error {
			if time.Since(begun) > pause {
				return nil
			}
			return awaitedError{make(chan struct{})}
		}
		if err := n.Stage(t.Context(), StageRequest{ID: id, Path: n.path("stage-" + id)}); err != nil || time.Since(begun) != 3*pause {
			t.Errorf("staged after %v: %v", time.Since(begun), err)
		}
	})
}

// changingError changes again and again, and never for the better.
type changingError struct{ awaitedError }

func (changingError) Changed() <-chan struct{} {
	changed := make(chan struct{})
	time.AfterFunc(pause/5, func() { close(changed) })
	return changed
}

func TestAStageThatWaitsInVainSaysWhy(t *testing.T) {
	never := func() error { return awaitedError{make(chan struct{})} }
	for name, test := range map[string]struct {
		refuses        func() error
		caller, waited time.Duration
	}{
		"nothing changes":             {never, time.Minute, patience},
		"all that changes is in vain": {func() error { return changingError{} }, time.Minute, patience},
		"its caller has given up":     {never, time.Second, time.Second},
		"no change will be known":     {func() error { return awaitedError{} }, time.Minute, 0},
		"a change does not help":      {func() error { return errElsewhere }, time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, r := registered(t, "ext4")
				r.refuses = test.refuses()
				ctx, cancel := context.WithTimeout(t.Context(), test.caller)
				defer cancel()
				begun := time.Now()
				err := n.Stage(ctx, StageRequest{ID: id, Path: n.path("stage-" + id)})
				if waited := time.Since(begun); !errors.Is(err, errElsewhere) || waited != test.waited {
					t.Errorf("staged: %v, after %v, want %v", err, waited, test.waited)
				}
			})
		})
	}
}
