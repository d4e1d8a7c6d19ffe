package lvm

import (
	"context"
	"slices"
	"sync"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Most of what LVM takes to remove a volume is what it takes to start and to read the disks.
// So what waits to be removed from one pool is removed by one process: by that of whoever
// comes first to the group.

// atOnce bounds how much is removed by one process, for which all other changes of the
// group wait.
const atOnce = 16

// removal is a volume or a snapshot that waits to be removed from a pool.
type removal struct {
	change
	pool provision.PoolRef
	// unlock gives back the lock of its id.
	unlock func()
	// taken ends the wait for the group: another caller has it, and removes this too.
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

// take takes a removal and the next ones of its pool, so many at most, out of the queue; none
// if another took it.
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

// removeWithOthers is carryOut for a removal, which is made with those of its pool that wait
// too.
func (p *Provisioner) removeWithOthers(ctx context.Context, pool provision.PoolRef, c change) error {
	unlock, err := p.volumes.Lock(ctx, c.id)
	if err != nil {
		return err
	}
	waiting, taken := context.WithCancel(ctx)
	defer taken()
	r := &removal{change: c, pool: pool, unlock: unlock, taken: taken, ended: make(chan error, 1)}
	p.removals.add(r)
	unlockGroup, err := p.groups.Lock(waiting, c.group)
	switch {
	case err == nil:
		p.tasks.Go(func() {
			defer unlockGroup()
			p.removeAll(context.WithoutCancel(ctx), p.removals.take(r, atOnce))
		})
	case len(p.removals.take(r, 1)) > 0: // its caller gave up, and nobody removes it
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

// removeAll makes removals for who holds their group's lock.
func (p *Provisioner) removeAll(ctx context.Context, all []*removal) {
	for _, r := range all {
		r.taken()
	}
	p.removeTogether(ctx, all)
	for _, r := range all { // what is gone is done, and the rest has a reason of its own
		err := p.carryOutLocked(ctx, r.change)
		r.unlock()
		r.ended <- err
	}
}

// removeTogether removes by one process what can be removed, as far as is known, if that is
// more than one.
func (p *Provisioner) removeTogether(ctx context.Context, all []*removal) {
	var together []change
	for _, r := range all {
		if done, _, err := p.decide(r.change, false); !done && err == nil {
			together = append(together, r.change)
		}
	}
	if len(together) > 1 {
		_ = p.execute(ctx, p.inOne(together), 0) // what it left is tried one by one
	}
}

// inOne is one change for several removals of a pool. LVM writes the group for each thin volume,
// and once for all that is carved out of the group.
func (p *Provisioner) inOne(removals []change) change {
	one := change{group: removals[0].group, thin: removals[0].thin, writes: makes(removals[0].thin)}
	if one.thin != "" {
		one.writes *= uint64(len(removals))
	}
	var ids []string
	for _, c := range removals {
		ids = append(ids, c.id)
	}
	one.command = func(int64) run.Command { return p.config.removeCommand(one.group, ids...) }
	one.learn = func(g *group, size int64) {
		for _, c := range removals {
			c.learn(g, size)
		}
	}
	return one
}
