package lvm

import (
	"context"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
)

// If Berth's process dies, the LVM command that it runs can die with it. That can leave two
// things that no later command repairs by itself. One is a copy that is still too small. The
// other is a device, or a thin pool with all of its devices, that is suspended in the middle of a
// change: a process that uses it waits for ever. Berth repairs both when it first sees the
// groups, and tries again from time to time.

// mend repairs these leftovers of all groups, in the background.
func (p *changer) mend(ctx context.Context) {
	for name, copies := range p.unfinished() {
		if !p.mends.begin(name) {
			continue
		}
		p.engine.Tasks.Go(func() {
			defer p.mends.end(name)
			unlock, err := p.engine.UnitLocks.Lock(ctx, name)
			if err != nil {
				return
			}
			defer unlock()
			p.resume(name)
			for _, id := range slices.Sorted(maps.Keys(copies)) {
				_ = p.carryOutLocked(ctx, p.growth(name, id)) // it is still listed as being copied
			}
		})
	}
}

// resume resumes the suspended volumes and thin pools of a group. A failure shows as their
// problem. The caller holds the group's lock, so no command of this process works on them. LVM
// does not report in the middle of another process's command.
func (p *waker) resume(name string) {
	var ids, pools []string
	p.engine.With(name, func(g *group.Facts) { ids, pools = g.Suspended(), g.SuspendedPools() })
	if len(ids)+len(pools) == 0 {
		return
	}
	ended := p.engine.Begin(name, name)
	err := p.reload(name, ids, pools)
	ended()
	p.look(name, pools...)
	now := p.mapped()
	p.engine.With(name, func(g *group.Facts) {
		if g == nil {
			return
		}
		for _, id := range ids {
			if c := g.Find(id); c != nil {
				c.Suspended, c.Frozen = err != nil, err != nil
			}
			if r := g.Wiping[id]; r != nil {
				r.Suspended = err != nil
			}
			if left := g.Pending[strings.TrimPrefix(id, group.CowPrefix)]; left != nil && left.Cow != nil {
				left.Cow.Suspended = err != nil
			}
		}
		for _, thin := range pools {
			if pool := g.Pools[thin]; pool != nil {
				pool.Suspended = now.suspends(name, thin)
			}
		}
	})
	p.engine.Changed.Set()
	p.nudge()
}

// unfinished returns the groups in which something is to be mended, with the copies that are
// still too small and the pools of these.
func (p *changer) unfinished() map[string]map[string]provision.PoolRef {
	p.state.Lock()
	defer p.state.Unlock()
	byGroup := map[string]map[string]provision.PoolRef{}
	for _, g := range p.state.Units() {
		copies := map[string]provision.PoolRef{}
		for id, v := range g.Volumes {
			if v.Growing {
				copies[id] = g.Ref(v.Pool)
			}
		}
		if len(copies)+len(g.Suspended())+len(g.SuspendedPools()) > 0 {
			byGroup[g.Name] = copies
		}
	}
	return byGroup
}
