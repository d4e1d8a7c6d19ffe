package trim

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/decide/trim"
	"berth.dev/berth/internal/mount"
)

const (
	// pause is between two rounds.
	pause = time.Minute
	// partTimeout bounds the wait for one part, an allocation group of xfs on a slow disk included. A part that
	// the kernel does not end keeps its mount busy, and is not waited for.
	partTimeout = 10 * time.Minute
	// patience bounds one trim, so that one filesystem does not keep the others of its pool waiting. What is
	// left of it is trimmed after rest.
	patience = time.Hour
	// rest is after how long a trim is tried again that failed.
	rest = time.Hour
)

// Observer learns of trims.
type Observer interface {
	// Trimmed is told how a trim ended, and how many bytes were discarded in it.
	Trimmed(pool string, bytes int64, err error)
	// Last is told when a volume was last trimmed to its end.
	Last(volume, pool string, at time.Time)
	// Gone is told of a volume that is trimmed no more.
	Gone(volume string)
}

// Worker trims the filesystems of a node.
type Worker struct {
	// Volumes returns the volumes with a replica on the node.
	Volumes func(ctx context.Context) ([]trim.Volume, error)
	// Trim trims a part of a mounted filesystem; mount.ErrNotMounted if the volume is not staged.
	Trim     func(ctx context.Context, id string, start, length int64) (mount.Trimmed, error)
	Book     Book
	Observer Observer
	Clock    clock.WithTicker
	Log      logr.Logger

	mu    sync.Mutex
	known map[string]*volume
	busy  map[string]bool // pools in which a filesystem is being trimmed
	work  sync.WaitGroup
}

// volume is what the process knows about one: what the node keeps, and until when it rests.
type volume struct {
	kept  trim.Kept
	rests time.Time
}

// due is a volume that is to be trimmed.
type due struct {
	trim.Volume
	since time.Time
}

// Start does rounds until ctx ends, and returns when no trim is running.
func (w *Worker) Start(ctx context.Context) error {
	defer w.work.Wait()
	ticks := w.Clock.NewTicker(pause)
	defer ticks.Stop()
	for {
		if err := w.Round(ctx); err != nil && ctx.Err() == nil {
			w.Log.Error(err, "filesystems are not trimmed for now")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C():
		}
	}
}

// Round looks at all volumes once, and begins the trims that are due. It waits for none.
func (w *Worker) Round(ctx context.Context) error {
	volumes, err := w.Volumes(ctx)
	if err != nil {
		return err
	}
	byPool := map[string][]due{}
	asked := map[string]bool{}
	for _, v := range volumes {
		if v.Interval <= 0 {
			continue
		}
		asked[v.ID] = true
		at, err := w.look(v)
		if err != nil {
			w.Log.Error(err, "a filesystem is not trimmed for now", "volume", v.ID)
		} else if at != nil {
			byPool[v.Pool] = append(byPool[v.Pool], due{v, *at})
		}
	}
	for pool, all := range byPool {
		slices.SortFunc(all, func(a, b due) int {
			if n := a.since.Compare(b.since); n != 0 {
				return n
			}
			return strings.Compare(a.ID, b.ID)
		})
		w.begin(ctx, pool, all)
	}
	return w.forget(asked)
}

// look decides on a volume, and returns since when it is due; nil if it is not.
func (w *Worker) look(v trim.Volume) (*time.Time, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.known[v.ID]
	if known == nil {
		kept, err := w.Book.Load(v.ID)
		if err != nil {
			return nil, err
		}
		known = &volume{kept: kept}
		if w.known == nil {
			w.known = map[string]*volume{}
		}
		w.known[v.ID] = known
	}
	if !known.kept.Trimmed.IsZero() {
		w.Observer.Last(v.ID, v.Pool, known.kept.Trimmed)
	}
	now := w.Clock.Now()
	a := trim.Decide(v, known.kept, known.rests, now)
	switch a.Verb {
	case trim.Trim:
		return &a.Moment, nil
	case trim.Note:
		kept := trim.Kept{Since: now}
		if err := w.Book.Store(v.ID, kept); err != nil {
			return nil, err
		}
		known.kept = kept
	}
	return nil, nil
}

// begin trims volumes of a pool one after the other, unless that is done already.
func (w *Worker) begin(ctx context.Context, pool string, all []due) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.busy[pool] {
		return
	}
	if w.busy == nil {
		w.busy = map[string]bool{}
	}
	w.busy[pool] = true
	w.work.Go(func() {
		defer func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.busy, pool)
		}()
		for _, v := range all {
			if ctx.Err() != nil {
				return
			}
			w.trim(ctx, v.Volume)
		}
	})
}

// forget drops what is known of volumes that are trimmed no more.
func (w *Worker) forget(but map[string]bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id := range w.known {
		if !but[id] {
			delete(w.known, id)
			w.Observer.Gone(id)
		}
	}
	return w.Book.Forget(but)
}
