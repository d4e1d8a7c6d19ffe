package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/engine"
)

// watched watches a shelf in the background, and takes in the Changed of the beginning.
func watched(t *testing.T, s *shelf) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s.Tasks.Go(func() {
		s.Watch(ctx, engine.Watch{
			Look: func(context.Context) {}, Interval: time.Second, Refresh: time.Hour,
			Pools: func(time.Time) []provision.Pool { return nil },
		})
	})
	t.Cleanup(func() { stop(); s.Tasks.Wait() })
	synctest.Wait()
	<-s.Changed
}

// told lets some looks pass, and says whether Changed was set.
func told(s *shelf) bool {
	<-time.After(3 * time.Second)
	select {
	case <-s.Changed:
		return true
	default:
		return false
	}
}

func TestTheWatchTellsOnceThatAUnitFellSilentOrAnsweredLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, false, "one")
		watched(t, s)
		if told(s) {
			t.Error("a change is told though none happened")
		}
		for _, because := range []error{engine.ErrNoAnswer, nil} {
			// No reading by the watch does this: an answer came after its reader gave up.
			s.With("a", func(b *box) { b.Silent = because })
			if !told(s) {
				t.Errorf("nobody is told that the unit's silence is now %v", because)
			}
			if told(s) {
				t.Errorf("it is told again that the unit's silence is %v", because)
			}
		}
	})
}

func TestTheWatchDoesNotTellThatAUnitIsStillSilentForAnotherReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(t, false, "one")
		s.With("a", func(b *box) { b.Silent = engine.ErrNoAnswer })
		watched(t, s)
		s.With("a", func(b *box) { b.Silent = errors.New("it is broken") })
		if told(s) {
			t.Error("a change is told")
		}
	})
}
