package main

import (
	"context"
	"sync"
	"time"
)

// moment is the pause after which Berth tidies a zpool in which nothing changed: its default.
const moment = time.Second

// tidying is what Berth does in its zpools after its answers. It is waited for, or it would go
// on while somebody else is measured.
type tidying struct {
	// wait returns when nothing is left to do.
	wait   func()
	mu     sync.Mutex
	paused []stretch
}

// stretch is a time from one instant to another.
type stretch struct{ from, to time.Time }

// pause is what zfs.Config asks for. There is one at a time in a zpool, and Berth has one zpool.
func (t *tidying) pause(ctx context.Context) {
	from := time.Now()
	_ = pause(ctx, moment) // it says only that ctx ended
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = append(t.paused, stretch{from, time.Now()})
}

// finish waits until nothing is left to do, and returns how long that took without the pauses:
// they say nothing of what it costs. All of them have ended by then.
func (t *tidying) finish() time.Duration {
	waited := stretch{from: time.Now()}
	t.wait()
	waited.to = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	paused := t.paused
	t.paused = nil
	return waited.without(paused)
}

// without is how long a stretch is without what of it was paused. A pause may have begun before
// the stretch did, so the lengths of the pauses are not to be subtracted as they are.
func (s stretch) without(paused []stretch) time.Duration {
	left := s.to.Sub(s.from)
	for _, p := range paused {
		before, after := max(0, s.from.Sub(p.from)), max(0, p.to.Sub(s.to))
		left -= max(0, p.to.Sub(p.from)-before-after)
	}
	return max(0, left)
}
