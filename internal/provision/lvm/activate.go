package lvm

import (
	"context"
	"maps"
	"slices"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// Volumes can be inactive after a reboot: not every machine activates its groups.
// All are activated once, when the provisioner first sees them, with one process per
// group; a volume whose device is not there is activated when it is asked for.

// activateAll activates what is inactive, behind its caller's back: a group that
// blocks must not hold up the first report.
func (p *Provisioner) activateAll(ctx context.Context) {
	for name, ids := range p.state.inactive() {
		p.tasks.Go(func() {
			unlock, err := p.groups.Lock(ctx, name)
			if err != nil {
				return
			}
			defer unlock()
			p.resume(name) // no volume of a thin pool that is suspended can be activated
			// What fails shows when the volume is asked for.
			_ = p.activateLocked(name, ids...)
		})
	}
}

// activated activates a volume whose node does not lead to its device and returns it; with a
// problem if the node still does not.
func (p *Provisioner) activated(ctx context.Context, name, id string) (provision.Volume, error) {
	unlock, err := p.groups.Lock(ctx, name)
	if err != nil {
		return provision.Volume{}, err
	}
	return run.Do(ctx, &p.tasks, func(ctx context.Context) (provision.Volume, error) {
		defer unlock()
		if _, err := p.view(name, id); err != nil {
			return provision.Volume{}, err // deleted meanwhile
		}
		failure := p.reach(ctx, name, id)
		v, err := p.view(name, id)
		if err == nil && failure != nil && v.Problem == "" {
			v.Problem = "the device of the volume cannot be used: " + provision.Problem(failure)
		}
		return v, err
	})
}

func (p *Provisioner) activateLocked(name string, ids ...string) error {
	// A pool that is active only through its volumes would go with the last of them,
	// and take with it what the kernel knows of its fill.
	var all, idle []string
	p.state.with(name, func(g *group) { all = g.poolsOf(ids...) })
	p.look(name, all...) // an administrator may have deactivated one, which is no change of the group
	p.state.with(name, func(g *group) { idle = g.idle(all...) })
	var lacking error
	if len(all) > 0 {
		lacking = p.provide(poolTarget)
	}
	p.begin(name)
	_, err := p.change(p.config.activateCommand(name, slices.Concat(idle, ids)...))
	p.end(name)
	err = explained(err, lacking)
	if err == nil {
		p.state.with(name, func(g *group) { g.activated(ids, idle) })
	}
	p.look(name, all...)
	if err != nil {
		p.refuse(name, err, all...)
	}
	return err
}

func (g *group) activated(ids, pools []string) {
	if g == nil {
		return
	}
	for _, id := range ids {
		if v := g.volumes[id]; v != nil {
			v.active = true
		}
	}
	for _, name := range pools {
		if p := g.pools[name]; p != nil {
			p.active = true
		}
	}
}

// inactive returns the inactive volumes by the groups that can activate them.
func (s *state) inactive() map[string][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	byGroup := map[string][]string{}
	for _, g := range s.groups {
		if !g.changeable() {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(g.volumes)) {
			if !g.volumes[id].active && s.twins(id) == nil {
				byGroup[g.name] = append(byGroup[g.name], id)
			}
		}
	}
	return byGroup
}
