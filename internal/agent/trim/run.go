package trim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth.dev/berth/internal/decide/trim"
	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// errSlow ends a trim that takes too long at once.
var errSlow = fmt.Errorf("%w: it took more than %v: the rest is trimmed later", context.DeadlineExceeded, patience)

// trim trims the filesystem of a volume, from where the last trim stopped.
func (w *Worker) trim(ctx context.Context, v trim.Volume) {
	kept, known := w.keptOf(v.ID)
	if !known {
		return // it went meanwhile
	}
	began, from := w.Clock.Now(), trim.From(kept)
	reached, bytes, err := w.parts(ctx, v.ID, from)
	switch {
	case err == nil:
		kept.Trimmed, kept.Next = w.Clock.Now(), 0
		w.Log.Info("trimmed a filesystem", "volume", v.ID, "pool", v.Pool, "discarded", bytes, "took", w.Clock.Since(began))
	case errors.Is(err, mount.ErrNotMounted) && reached == from:
		return // it is due until it is mounted
	default:
		kept.Next = reached
	}
	if ctx.Err() == nil {
		w.Observer.Trimmed(v.Pool, bytes, err)
	}
	w.keep(v, kept, w.restAfter(ctx, v, err))
}

// parts trims one part after the other, and returns the byte up to which it came.
func (w *Worker) parts(ctx context.Context, id string, from int64) (reached, bytes int64, err error) {
	began, length := w.Clock.Now(), trim.First
	for reached = from; ; {
		part := w.Clock.Now()
		got, err := w.part(ctx, id, reached, length)
		if err != nil {
			return reached, bytes, err
		}
		bytes, reached = bytes+got.Bytes, got.Next
		switch {
		case reached == 0:
			return reached, bytes, nil
		case w.Clock.Since(began) > patience:
			return reached, bytes, errSlow
		}
		length = trim.Pace(length, w.Clock.Since(part))
	}
}

func (w *Worker) part(ctx context.Context, id string, start, length int64) (mount.Trimmed, error) {
	ctx, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	return w.Trim(ctx, id, start, length)
}

// restAfter is how long a volume rests after a trim with that error.
func (w *Worker) restAfter(ctx context.Context, v trim.Volume, err error) time.Duration {
	switch {
	case err == nil, ctx.Err() != nil, errors.Is(err, mount.ErrNotMounted):
		return 0
	case errors.Is(err, provision.ErrUnsupported):
		w.Log.Info("a filesystem cannot be trimmed", "volume", v.ID, "pool", v.Pool, "why", err.Error())
		return max(v.Interval, rest)
	}
	w.Log.Error(err, "a filesystem was not trimmed to its end, trying again later", "volume", v.ID, "pool", v.Pool, "after", rest)
	return rest
}

func (w *Worker) keptOf(id string) (trim.Kept, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.known[id]; known != nil {
		return known.kept, true
	}
	return trim.Kept{}, false
}

// keep stores what is known after a trim. The memory has it in any case: a file that cannot be written lets no
// volume be trimmed over and over.
func (w *Worker) keep(v trim.Volume, kept trim.Kept, rests time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.known[v.ID]
	if known == nil {
		return
	}
	changed := known.kept != kept
	known.kept = kept
	if rests > 0 {
		known.rests = w.Clock.Now().Add(rests)
	}
	if !kept.Trimmed.IsZero() {
		w.Observer.Last(v.ID, v.Pool, kept.Trimmed)
	}
	if !changed {
		return
	}
	if err := w.Book.Store(v.ID, kept); err != nil {
		w.Log.Error(err, "when a filesystem was trimmed is lost with this process", "volume", v.ID)
	}
}
