package pooled_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// hangs is how long the pool of a volume hangs whose name begins with "mute" or "deaf". Nothing ends what waits for it.
const hangs = time.Hour

// muted is a stock in which some pools hang.
type muted struct{ stream.Stock }

// Open implements stream.Stock.
func (m muted) Open(ctx context.Context, want wire.Want) (stream.Source, error) {
	source, err := m.Stock.Open(ctx, want)
	if err == nil && strings.HasPrefix(want.Volume, "mute-") {
		return mute{source, ctx.Done()}, nil
	}
	return source, err
}

// mute has nothing to send, and does not end.
type mute struct {
	stream.Source
	given <-chan struct{}
}

// Read implements stream.Source.
func (m mute) Read([]byte) (int, error) {
	<-m.given
	return 0, errors.New("the stream was given up")
}

// Close implements stream.Source.
func (m mute) Close(committed bool) error {
	<-time.After(hangs)
	return m.Source.Close(committed)
}

func TestAPoolThatHangsDoesNotKeepThePlacesOfOthers(t *testing.T) {
	for name, volume := range map[string]string{"at the sender": "mute", "at the receiver": "deaf"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, "alpha", "beta")
				var ended sync.WaitGroup
				defer ended.Wait()
				for i := range 2 { // as many as there are places
					ended.Go(func() {
						if err := f.builds(t.Context(), "alpha", "beta", fmt.Sprint(volume, "-", i)); err == nil {
							t.Error("a stream of a pool that hangs arrives")
						}
					})
				}
				synctest.Wait()
				began := time.Now()
				if err := f.builds(t.Context(), "alpha", "beta", "1s"); err != nil || time.Since(began) > hangs/2 {
					t.Errorf("the stream of another pool ends after %v with %v", time.Since(began), err)
				}
			})
		})
	}
}
