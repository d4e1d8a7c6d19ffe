package lvm

import (
	"context"
	"slices"
	"sync"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
)

// LVM spends most of the time of a removal on its start and on reading the disks. So one process
// makes the removals that wait in one pool: the process of the caller that is the first to get
// the group's lock.

// atOnce bounds how many removals one process makes, since all other changes of the group wait
// for it.
const atOnce = 16

// removal is a volume or a snapshot that waits to be removed from a pool.
type removal struct {
	change
	pool provision.PoolRef
	// unlock gives back the lock of its id.
	unlock func()
	// taken ends the wait for the group's lock: another caller has it, and makes this removal
	// too.
	taken context.CancelFunc
	ended chan error
}

// removals are those that wait, by pool.
type removals struct {
	mu      sync.Mutex
	waiting map[provision.PoolRef][]*removal
}

func (q *removals) add(r *removal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == nil {
		q.waiting = map[provision.PoolRef][]*removal{}
	}
	q.waiting[r.pool] = append(q.waiting[r.pool], r)
}

// take takes a removal and the ones of its pool that wait longest out of the queue, atMost in all.
// It returns none if another caller took the removal. Callers get the group's lock in another order
// than they enter the queue, so a removal may have others before it and after it.
func (q *removals) take(r *removal, atMost int) (taken []*removal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.waiting[r.pool]
	at := slices.Index(waiting, r)
	if at < 0 {
		return nil
	}
	others := slices.Delete(waiting, at, at+1)
	n := min(atMost-1, len(others))
	taken = append([]*removal{r}, others[:n]...)
	if q.waiting[r.pool] = slices.Delete(others, 0, n); len(q.waiting[r.pool]) == 0 {
		delete(q.waiting, r.pool)
	}
	return taken
}

// remover removes volumes and snapshots.
type remover struct {
	*changer
	// removals wait for their groups.
	removals removals
}

// removeWithOthers is carryOut for a removal. It makes the removal together with others that wait
// in the pool.
func (p *remover) removeWithOthers(ctx context.Context, pool provision.PoolRef, c change) error {
	unlock, err := p.engine.IDLocks.Lock(ctx, c.id)
	if err != nil {
		return err
	}
	waiting, taken := context.WithCancel(ctx)
	defer taken()
	r := &removal{change: c, pool: pool, unlock: unlock, taken: taken, ended: make(chan error, 1)}
	p.removals.add(r)
	unlockGroup, err := p.engine.UnitLocks.Lock(waiting, c.group)
	switch {
	case err == nil:
		p.engine.Tasks.Go(func() {
			defer unlockGroup()
			p.removeAll(context.WithoutCancel(ctx), pool, p.removals.take(r, atOnce))
		})
	case len(p.removals.take(r, 1)) > 0: // its caller gave up, and no other caller took it
		unlock()
		return err
	}
	select {
	case err := <-r.ended:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// removeAll makes removals from a pool. The caller holds their group's lock.
func (p *remover) removeAll(ctx context.Context, pool provision.PoolRef, all []*removal) {
	for _, r := range all {
		r.taken()
	}
	p.removeTogether(ctx, pool, all)
	for _, r := range all { // one that is made has no step left, and each other gets its own error
		err := p.carryOutLocked(ctx, r.change)
		r.unlock()
		r.ended <- err
	}
}

// removeTogether makes with one process the removals that the cached facts allow. Those that it
// does not make are tried one by one afterwards.
func (p *remover) removeTogether(ctx context.Context, pool provision.PoolRef, all []*removal) {
	c := p.planned(p.inOne(pool, all))
	steps, _ := p.engine.Decide(c, false)
	defer p.engine.End(c)
	_, _ = p.engine.Take(ctx, c, steps)
}

// inOne is one change for those of several removals from a pool that can be made now, if they
// are more than one.
func (p *remover) inOne(pool provision.PoolRef, all []*removal) change {
	name, thin := group.Split(pool)
	return change{group: name, plan: func(g *group.Facts, fresh bool) (*group.Step, error) {
		var ids []string
		for _, r := range all {
			if s, _ := r.plan(g, fresh); s != nil && p.state.twins(r.id) == nil {
				ids = append(ids, r.id)
			}
		}
		if len(ids) < 2 {
			return nil, nil
		}
		return p.planner().Removal(g, thin, ids...), nil
	}}
}
