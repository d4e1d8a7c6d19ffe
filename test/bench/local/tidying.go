package main

import (
	"context"
	"sync"
	"time"
)

// moment is the pause after which Berth tidies a zpool in which nothing changed. It is
// Berth's default.
const moment = time.Second

// tidying is the work that Berth does in its zpools after its answers. The benchmark waits for
// it, because it would otherwise go on while another side is measured.
type tidying struct {
	// wait returns when nothing is left to do.
	wait   func()
	mu     sync.Mutex
	paused []stretch
}

// stretch is a time from one instant to another.
type stretch struct{ from, to time.Time }

// pause is the Pause of zfs.Config. A zpool has one pause at a time, and Berth has one zpool.
func (t *tidying) pause(ctx context.Context) {
	from := time.Now()
	_ = pause(ctx, moment) // the error says only that ctx ended
	t.mu.Lock()
	defer t.mu.Unlock()
	t.paused = append(t.paused, stretch{from, time.Now()})
}

// finish waits until nothing is left to do, and returns how long that took without the pauses,
// which cost nothing. All pauses have ended by then.
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

// without returns the length of a stretch without its pauses. A pause may have begun before
// the stretch, so without subtracts only the part of it that is within the stretch.
func (s stretch) without(paused []stretch) time.Duration {
	left := s.to.Sub(s.from)
	for _, p := range paused {
		before, after := max(0, s.from.Sub(p.from)), max(0, p.to.Sub(s.to))
		left -= max(0, p.to.Sub(p.from)-before-after)
	}
	return max(0, left)
}
