package manage

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/wish"
	"berth.dev/berth/internal/provision"
)

const (
	// patience is how long a round waits for a step before it goes on to the next wish of the
	// group. The step itself goes on.
	patience = time.Minute
	// A step that failed is tried again after at least and at most this long.
	minRetry = 10 * time.Second
	maxRetry = 5 * time.Minute
)

// Worker has wishes carried out, and keeps how they stand.
type Worker struct {
	Manager provision.Manager
	// Facts returns the facts about the node.
	Facts func(ctx context.Context) (wish.Facts, error)
	// Told is called when a standing has changed. It must not block.
	Told  func()
	Clock clock.PassiveClock
	Log   logr.Logger

	mu        sync.Mutex
	standings map[key]wish.Standing
	failures  map[key]failure
}

// key tells apart the wishes of several classes for one pool.
type key struct{ pool, class string }

// failure says how often a step failed in a row, and when it is tried again.
type failure struct {
	times int
	again time.Time
}

// Round takes one step of each wish: in a volume group one after the other, and for all
// groups at once. It waits for no step longer than patience.
func (w *Worker) Round(ctx context.Context) error {
	facts, err := w.Facts(ctx)
	if err != nil {
		return err
	}
	wishes := wish.Wishes(facts)
	byGroup := map[string][]wish.Wish{}
	for _, wanted := range wishes {
		group, _, _ := strings.Cut(wanted.Pool.Name, "/")
		byGroup[group] = append(byGroup[group], wanted)
	}
	var groups sync.WaitGroup
	for _, ofOne := range byGroup {
		groups.Go(func() {
			for _, wanted := range ofOne {
				w.step(ctx, wanted)
			}
		})
	}
	groups.Wait()
	w.forget(wishes)
	return nil
}

// Standings are how the wishes stand, in a stable order.
func (w *Worker) Standings() []wish.Standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.SortedFunc(maps.Values(w.standings), func(a, b wish.Standing) int {
		return strings.Compare(a.Pool+" "+a.Class, b.Pool+" "+b.Class)
	})
}

// step takes a step of a wish, unless it failed just now.
func (w *Worker) step(ctx context.Context, wanted wish.Wish) {
	at := key{wanted.Pool.Name, wanted.Class}
	if wanted.Verb == decide.Refuse {
		w.tell(at, wanted.Stand(provision.Outcome{}, nil))
		return
	}
	if w.rests(at) {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	outcome, err := w.Manager.Ensure(bounded, wanted.PoolWish)
	if ctx.Err() != nil {
		return
	}
	w.note(at, err)
	switch {
	case err != nil:
		w.Log.Error(err, "managing a pool failed, trying again", "pool", at.pool, "class", at.class)
	case outcome.Reason.Done():
		w.Log.Info("managed a pool", "pool", at.pool, "class", at.class, "done", outcome.Reason, "message", outcome.Message)
	}
	if !wanted.Named {
		w.tell(at, wanted.Stand(outcome, err))
	}
}

func (w *Worker) rests(at key) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, failed := w.failures[at]
	return failed && w.Clock.Now().Before(f.again)
}

func (w *Worker) note(at key, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.failures, at)
		return
	}
	if w.failures == nil {
		w.failures = map[key]failure{}
	}
	times := w.failures[at].times
	w.failures[at] = failure{times + 1, w.Clock.Now().Add(min(minRetry<<min(times, 10), maxRetry))}
}

// tell stores a standing with the last change of its pool, and calls Told if that is news.
func (w *Worker) tell(at key, s wish.Standing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	old, known := w.standings[at]
	s.Last, s.At = old.Last, old.At
	if s.Reason.Done() {
		s.Last, s.At = s.Outcome, w.Clock.Now()
	}
	if w.standings == nil {
		w.standings = map[key]wish.Standing{}
	}
	w.standings[at] = s
	if !known || old != s {
		w.Told()
	}
}

// forget drops the standings of wishes that no class has any more.
func (w *Worker) forget(wishes []wish.Wish) {
	asked := map[key]bool{}
	for _, wanted := range wishes {
		asked[key{wanted.Pool.Name, wanted.Class}] = true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for at := range w.standings {
		if !asked[at] {
			delete(w.standings, at)
			w.Told()
		}
	}
	maps.DeleteFunc(w.failures, func(at key, _ failure) bool { return !asked[at] })
}
