package zfs

import (
	"context"

	"berth.dev/berth/internal/provision/zfs/zpool"
)

// sweep removes the leftovers in a zpool, and says whether it took a step for that. It skips a leftover
// whose id another change has locked: the zpool is tidied again when that change ends.
func (t *tidier) sweep(ctx context.Context, name string) (stepped bool) {
	for more := true; more; {
		more = false
		var names []string
		t.engine.With(name, func(z *zpool.Facts) { names = t.planner().Untidy(z) })
		for _, of := range names {
			did, failed, err := t.sweepUp(ctx, name, of)
			stepped = stepped || did || failed != ""
			// A dataset that had no leftovers any more may have some again. And another change may
			// have made the failed step impossible, and have left the rest to this sweep.
			more = more || err == nil || failed != "" && !t.isNext(name, of, failed)
		}
	}
	return stepped
}

// isNext says whether a step is the next one that removes leftovers of a dataset.
func (t *tidier) isNext(name, of, step string) (next bool) {
	t.engine.With(name, func(z *zpool.Facts) {
		steps := t.planner().Leftovers(z, of)
		next = len(steps) > 0 && steps[0].Name() == step
	})
	return next
}

// sweepUp removes the leftovers of one dataset, if there are any. A step that fails is tried
// again after the next change.
func (t *tidier) sweepUp(ctx context.Context, name, of string) (did bool, failed string, failure error) {
	id := zpool.IDOf(of)
	unlockID, err := t.engine.IDLocks.TryLock(id)
	if err != nil {
		return false, "", err
	}
	defer unlockID()
	unlock, err := t.engine.UnitLocks.Share(ctx, name)
	if err != nil {
		return false, "", err
	}
	defer unlock()
	c := zpool.Change{Unit: name, ID: id, Plan: t.planned(name, func(plan zpool.Planner, z *zpool.Facts) ([]zpool.Step, error) { return plan.Leftovers(z, of), nil })}
	steps, err := t.engine.Decide(c, false)
	if err != nil || len(steps) == 0 {
		return false, "", err
	}
	defer t.engine.End(c)
	if failed, err = t.engine.Take(ctx, c, steps); err != nil {
		t.engine.Book.Changed(name)
		return false, failed, err
	}
	return true, "", nil
}
