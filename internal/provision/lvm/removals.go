package lvm

import (
	"context"
	"fmt"
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

// take takes a removal and the next ones of its pool out of the queue, atMost in all. It returns
// none if another caller took the removal.
func (q *removals) take(r *removal, atMost int) (taken []*removal) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := q.waiting[r.pool]
	at := slices.Index(waiting, r)
	if at < 0 {
		return nil
	}
	end := min(at+atMost, len(waiting))
	taken = slices.Clone(waiting[at:end])
	if q.waiting[r.pool] = slices.Delete(waiting, at, end); len(q.waiting[r.pool]) == 0 {
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
			p.removeAll(context.WithoutCancel(ctx), p.removals.take(r, atOnce))
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

// removeAll makes removals. The caller holds their group's lock.
func (p *remover) removeAll(ctx context.Context, all []*removal) {
	for _, r := range all {
		r.taken()
	}
	p.removeTogether(ctx, all)
	for _, r := range all { // one that is made has no step left, and each other gets its own error
		err := p.carryOutLocked(ctx, r.change)
		r.unlock()
		r.ended <- err
	}
}

// removeTogether makes with one process the removals that the cached facts allow, if they are
// more than one.
func (p *remover) removeTogether(ctx context.Context, all []*removal) {
	var together []change
	for _, r := range all {
		if done, err := p.decide(r.change); !done && err == nil {
			together = append(together, r.change)
		}
	}
	if len(together) > 1 {
		_, thin := group.Split(all[0].pool)
		p.removeInOne(ctx, p.inOne(together, thin))
	}
}

// removeInOne carries out one change for several removals. The removals that it does not make are
// tried one by one.
func (p *remover) removeInOne(ctx context.Context, c change) {
	made := p.planned(c)
	steps, err := p.engine.Decide(made, false)
	if err == nil {
		defer p.engine.End(made)
		_, err = p.engine.Take(ctx, made, steps)
	}
	if err != nil {
		backend{p.waker}.LookAgain(ctx, c.group)
	}
}

// inOne is one change for several removals of a pool, each of which was planned.
func (p *remover) inOne(removals []change, thin string) change {
	var ids []string
	for _, c := range removals {
		ids = append(ids, c.id)
	}
	return change{group: removals[0].group, plan: func(g *group.Facts, _ bool) (*group.Step, error) {
		if g == nil {
			return nil, fmt.Errorf("%w: %s", provision.ErrPoolMissing, removals[0].group)
		}
		return p.planner().Removal(g, thin, ids...), nil
	}}
}
