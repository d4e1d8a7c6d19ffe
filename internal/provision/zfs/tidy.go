package zfs

import (
	"context"

	"berth.dev/berth/internal/provision/zfs/zpool"
)

// The tidier tidies a zpool in the background: it removes the leftovers of changes, and reads
// how much new snapshots hold, which only ZFS knows. That would be in the way of requests, so
// it waits until nothing changed for a moment, but for this many moments at most.
const moments = 30

// tidier removes leftovers.
type tidier struct{ changer }

// tidySoon has a zpool tidied in the background, if there is something to tidy.
func (t *tidier) tidySoon(ctx context.Context, name string) {
	begin := false
	t.engine.With(name, func(z *zpool.Facts) {
		begin = z != nil && !z.Tidying && (len(t.planner().Untidy(z)) > 0 || len(z.Unmeasured()) > 0)
		if begin {
			z.Tidying = true
		}
	})
	if begin {
		ctx = context.WithoutCancel(ctx)
		t.engine.Tasks.Go(func() {
			t.awaitRest(ctx, name)
			t.engine.With(name, func(z *zpool.Facts) {
				if z != nil {
					z.Tidying = false // a change that ends from now on begins this anew
				}
			})
			if t.sweep(ctx, name) {
				t.cleared(name)
				t.engine.Changed.Set()
			}
			t.measure(ctx, name)
		})
	}
}

// seeClutter notes whether something is left over in a zpool that was just read.
func (r *reader) seeClutter(z *zpool.Facts) {
	if z != nil {
		z.Cluttered = len(r.planner().Untidy(z)) > 0
	}
}

// cleared has a zpool read again whose figures still include the leftovers.
func (t *tidier) cleared(name string) {
	t.engine.With(name, func(z *zpool.Facts) {
		if z != nil && z.Cluttered && len(t.planner().Untidy(z)) == 0 {
			t.engine.Touch(z)
		}
	})
}

// tidyEach has all zpools tidied in the background.
func (t *tidier) tidyEach(ctx context.Context) {
	for _, name := range t.engine.Names() {
		t.tidySoon(ctx, name)
	}
}

// awaitRest returns when nothing changed for a moment, or has been changing for long.
func (t *tidier) awaitRest(ctx context.Context, name string) {
	for range moments {
		before, _ := t.activity(name)
		t.config.Pause(ctx)
		if after, running := t.activity(name); after == before && running == 0 {
			return
		}
	}
}

// activity returns how many changes ended, and how many are under way.
func (t *tidier) activity(name string) (ended, underWay int) {
	t.engine.With(name, func(z *zpool.Facts) {
		if z != nil {
			ended, underWay = z.Activity()
		}
	})
	return ended, underWay
}

// measure reads how much new snapshots hold. It does not read the whole zpool, which would
// take long.
func (t *tidier) measure(ctx context.Context, name string) {
	unlock, err := t.engine.UnitLocks.Share(ctx, name) // no reader reads the whole zpool meanwhile
	if err != nil {
		return
	}
	defer unlock()
	var snapshots []string
	t.engine.With(name, func(z *zpool.Facts) {
		if z != nil && z.Answers(t.config.Now()) == nil && !z.Asking {
			snapshots = z.Unmeasured()
		}
	})
	if len(snapshots) == 0 {
		return
	}
	out, err := t.askOf(ctx, name, t.tool.MeasureCommand(snapshots))
	rows, parseErr := zpool.Parse(out)
	if err != nil || parseErr != nil { // one of them went meanwhile
		t.engine.Book.Changed(name)
		t.engine.Changed.Set()
		return
	}
	t.engine.With(name, func(z *zpool.Facts) { z.LearnSizes(rows) })
	t.engine.Changed.Set()
	t.tidySoon(ctx, name) // there may be more
}
