package engine

import (
	"context"
	"reflect"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
)

// Watch holds how a backend notices changes by others of which no event tells.
type Watch struct {
	// Look asks the kernel, without a process, which units there are. It is called after each
	// Interval.
	Look     func(ctx context.Context)
	Interval time.Duration
	// Refresh is the interval at which all units are read again, also those that did not answer.
	Refresh time.Duration
	// Pools returns the pools as they are known at a time. If that is zero, they show no duration.
	Pools func(now time.Time) []provision.Pool
}

// Watch watches until ctx ends. It sets Changed at the beginning, because there may have been changes
// since an earlier report, when a reading shows other pools, and when other units are silent than
// before: a unit may answer long after its reading was given up, and no later reading differs then.
func (e *Engine[U]) Watch(ctx context.Context, w Watch) {
	look, refresh := time.NewTicker(w.Interval), time.NewTicker(w.Refresh)
	defer look.Stop()
	defer refresh.Stop()
	e.ChangedAll()
	e.Changed.Set()
	silent := e.Silent()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
			w.Look(ctx)
			if now := e.Silent(); !slices.Equal(silent, now) {
				silent = now
				e.Changed.Set()
			}
		case <-refresh.C:
			before := w.Pools(time.Time{})
			e.ChangedAll()
			e.RefreshEach(ctx, e.Names())
			if !reflect.DeepEqual(before, w.Pools(time.Time{})) {
				e.Changed.Set()
			}
		}
	}
}
