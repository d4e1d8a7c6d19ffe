package engine_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/run"
)

// quick is a Runner that answers at once.
type quick struct{ run.Runner }

func (quick) Query(context.Context, run.Command) ([]byte, error) { return []byte("yes"), nil }

func TestACallerThatIsGoneGetsNoAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ask := func() ([]byte, error) {
		return engine.Ask(ctx, quick{}, run.Command{}, time.Minute, func() func() { return func() {} })
	}
	if out, err := ask(); err != nil || string(out) != "yes" {
		t.Errorf("%q, %v", out, err)
	}
	cancel()
	for range 100 {
		if out, err := ask(); !errors.Is(err, context.Canceled) {
			t.Fatalf("%q, %v", out, err)
		}
	}
}

// slow is a Runner whose query ends after a time with an error, whatever its context says.
type slow struct {
	run.Runner
	takes time.Duration
}

func (s slow) Query(context.Context, run.Command) ([]byte, error) {
	<-time.After(s.takes)
	return []byte("part"), errStuck
}

func TestAQueryThatDoesNotEndIsLeftBehindUntilItEnds(t *testing.T) {
	const limit = time.Minute
	for name, tc := range map[string]struct {
		takes, waits time.Duration
		want         error
		left         bool
	}{
		"it fails in time":            {limit / 2, limit / 2, errStuck, false},
		"it ends soon after its kill": {limit + time.Second/2, limit + time.Second/2, errStuck, false},
		"it does not end when killed": {2 * limit, limit + time.Second, engine.ErrNoAnswer, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, left, ended := time.Now(), false, time.Duration(0)
				_, err := engine.Ask(t.Context(), slow{takes: tc.takes}, run.Command{}, limit, func() func() {
					left = true
					return func() { ended = time.Since(began) }
				})
				if !errors.Is(err, tc.want) || time.Since(began) != tc.waits || left != tc.left {
					t.Errorf("%v after %v, left behind is %v; want %v, %v, %v", err, time.Since(began), left, tc.want, tc.waits, tc.left)
				}
				<-time.After(tc.takes)
				synctest.Wait()
				if left && ended != tc.takes {
					t.Errorf("it ended after %v, and that was told after %v", tc.takes, ended)
				}
			})
		})
	}
}
