package lvm

import (
	"context"
	"maps"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// A copy is a writable thin snapshot of its source. One that is to be larger is
// extended by a second process. What it must have is recorded by the first, so whoever
// finds it smaller knows that nobody has used it yet, and extends it.

// growth makes a copy as large as it must be. Nothing is to be done for one that is,
// nor for a volume that is none.
func (p *Provisioner) growth(pool provision.PoolRef, id string) change {
	name, thin := split(pool)
	return change{
		group: name, id: id, thin: thin,
		plan:    func(g *group, _ bool) (bool, int64, error) { return g.planGrowth(id, p.config.Now()) },
		command: func(size int64) run.Command { return p.config.extendCommand(name, id, size) },
		learn: func(g *group, _ int64) {
			if v := g.volumes[id]; v != nil {
				v.copying = false
			}
		},
	}
}

// finishCopies extends what a crash or a failure has left too small, behind its
// caller's back. What fails is tried again later.
func (p *Provisioner) finishCopies(ctx context.Context) {
	for name, copies := range p.state.unfinished() {
		if !p.copies.begin(name) {
			continue
		}
		p.tasks.Go(func() {
			defer p.copies.end(name)
			unlock, err := p.groups.Lock(ctx, name)
			if err != nil {
				return
			}
			defer unlock()
			for _, id := range slices.Sorted(maps.Keys(copies)) {
				_ = p.carryOutLocked(ctx, p.growth(copies[id], id)) // it is still listed as being copied
			}
		})
	}
}

// unfinished returns the pools of the volumes that are not yet as large as they must be,
// by group and id.
func (s *state) unfinished() map[string]map[string]provision.PoolRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	byGroup := map[string]map[string]provision.PoolRef{}
	for _, g := range s.groups {
		for id, v := range g.volumes {
			if !v.copying {
				continue
			}
			if byGroup[g.name] == nil {
				byGroup[g.name] = map[string]provision.PoolRef{}
			}
			byGroup[g.name][id] = g.ref(v.pool)
		}
	}
	return byGroup
}

// now is the time as it is recorded.
func (p *Provisioner) now() time.Time { return time.Unix(p.config.Now().Unix(), 0).UTC() }
