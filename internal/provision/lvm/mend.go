package lvm

import (
	"context"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
)

// A process that dies in the middle takes the LVM command it runs with it. Two things can
// be left that no later command puts right by itself: a copy that is too small yet, and a
// device, or a thin pool with all of its devices, that is suspended while it is changed, on
// which whoever uses it waits for ever.
// Both are put right when the groups are first seen, and tried again from time to time.

// mend puts right what is left in all groups, behind its caller's back.
func (p *Provisioner) mend(ctx context.Context) {
	for name, copies := range p.state.unfinished() {
		if !p.mends.begin(name) {
			continue
		}
		p.tasks.Go(func() {
			defer p.mends.end(name)
			unlock, err := p.groups.Lock(ctx, name)
			if err != nil {
				return
			}
			defer unlock()
			p.resume(name)
			for _, id := range slices.Sorted(maps.Keys(copies)) {
				_ = p.carryOutLocked(ctx, p.growth(copies[id], id)) // it is still listed as being copied
			}
		})
	}
}

// resume resumes the volumes and the thin pools of a group that are suspended. What fails
// shows as their problem. The group's lock is held: no command of this process is at work
// on them, and LVM reports nothing in the middle of another's.
func (p *Provisioner) resume(name string) {
	var ids, pools []string
	p.state.with(name, func(g *group) { ids, pools = g.suspended(), g.suspendedPools() })
	if len(ids)+len(pools) == 0 {
		return
	}
	p.begin(name)
	err := p.reload(name, ids, pools)
	p.end(name)
	p.look(name, pools...)
	now := p.mapped()
	p.state.with(name, func(g *group) {
		if g == nil {
			return
		}
		for _, id := range ids {
			if c := g.find(id); c != nil {
				c.suspended, c.frozen = err != nil, err != nil
			}
			if r := g.wiping[id]; r != nil {
				r.suspended = err != nil
			}
			if left := g.pending[strings.TrimPrefix(id, cowPrefix)]; left != nil && left.cow != nil {
				left.cow.suspended = err != nil
			}
		}
		for _, thin := range pools {
			if pool := g.pools[thin]; pool != nil {
				pool.suspended = now.suspends(name, thin)
			}
		}
	})
	p.signal()
	p.nudge()
}

// suspended returns the volumes, and what is left of some, that are; none of a group that is nil.
func (g *group) suspended() (ids []string) {
	if g == nil || !g.changeable() {
		return nil
	}
	for id, v := range g.volumes {
		if v.suspended {
			ids = append(ids, id)
		}
	}
	for id, s := range g.snapshots {
		if s.suspended {
			ids = append(ids, id)
		}
	}
	for id, left := range g.pending {
		if left.cow != nil && left.cow.suspended {
			ids = append(ids, cowName(id))
		}
	}
	for id, r := range g.wiping {
		if r.suspended {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// unfinished returns the groups in which something is to be mended, with the copies that
// are not yet as large as they must be and the pools of these.
func (s *state) unfinished() map[string]map[string]provision.PoolRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	byGroup := map[string]map[string]provision.PoolRef{}
	for _, g := range s.groups {
		copies := map[string]provision.PoolRef{}
		for id, v := range g.volumes {
			if v.growing {
				copies[id] = g.ref(v.pool)
			}
		}
		if len(copies)+len(g.suspended())+len(g.suspendedPools()) > 0 {
			byGroup[g.name] = copies
		}
	}
	return byGroup
}
