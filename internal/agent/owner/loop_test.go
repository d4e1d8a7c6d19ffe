package owner_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/ownership"
)

// idle is a node that keeps one volume, about which nothing can be found out.
type idle struct {
	owner.World
	tended, asked atomic.Int32
}

func (w *idle) Volumes() ([]string, error) { return []string{theVolume}, nil }
func (w *idle) ShutDowns() []string        { return nil }

func (w *idle) Load(string) (journal.Kept, bool, error) {
	w.tended.Add(1)
	return journal.Kept{}, false, errors.New("the journal cannot be read")
}

func (w *idle) Standing(context.Context) (owner.Standing, error) {
	w.asked.Add(1)
	return owner.Standing{}, nil
}

func TestALoopTendsWhatTheNodeKeepsAtTheStartAndTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		w := &idle{}
		l := owner.NewLoop(ctx, clock.RealClock{}, logr.Discard())
		o := owner.New(owner.Config{
			Node: "a", Boot: "boot", World: w, Medium: owner.Attachments(nil, nil), Locks: &keyed.Locks[string]{}, Rules: ownership.NodeRules(),
			Poke: l.Poke, Background: l.Background, Log: logr.Discard(),
		})
		ended := make(chan error)
		go func() { ended <- l.Run(o) }()
		time.Sleep(10 * time.Second) //nolint:forbidigo // virtual time
		tended, asked := w.tended.Load(), w.asked.Load()
		if tended < 12 || asked < 10 { // each look of Watch loads, too
			t.Errorf("in ten seconds the volume was looked at %d times, and the guard %d times", tended, asked)
		}
		moved := make(chan struct{})
		l.Background(func(ctx context.Context) {
			<-ctx.Done()
			close(moved)
		})
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		<-moved
	})
}
