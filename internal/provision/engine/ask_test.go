package engine_test

import (
	"context"
	"errors"
	"testing"
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
