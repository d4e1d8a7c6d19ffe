package lvm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/run"
)

// waker activates and resumes devices.
type waker struct {
	*reader
	// looks are the groups whose thin pools are being looked at.
	looks checks
}

// Volumes can be inactive after a reboot: not every machine activates its groups. The provisioner
// activates all of them once, when it first sees them, with one process per group. Later it
// activates a volume without a device when a caller asks for the volume.

// activateAll activates the inactive volumes in the background: a group that blocks must not hold
// up the first report.
func (p *waker) activateAll(ctx context.Context) {
	for name, ids := range p.inactive() {
		p.engine.Tasks.Go(func() {
			unlock, err := p.engine.UnitLocks.Lock(ctx, name)
			if err != nil {
				return
			}
			defer unlock()
			p.resume(name) // no volume of a thin pool that is suspended can be activated
			// A failure shows when a caller asks for the volume.
			_ = p.activateLocked(name, ids...)
		})
	}
}

func (p *waker) activateLocked(name string, ids ...string) error {
	// A pool that is active only through its volumes is deactivated with the last of them. The
	// kernel then no longer knows its fill.
	var all, idle []string
	p.engine.With(name, func(g *group.Facts) { all = g.PoolsOf(ids...) })
	p.look(name, all...) // an administrator may have deactivated one, which is no change of the group
	p.engine.With(name, func(g *group.Facts) {
		if g != nil {
			idle = g.Pools.Idle(all)
		}
	})
	err := p.activate(name, all, slices.Concat(idle, ids)...)
	p.look(name, all...)
	if err != nil {
		p.refuse(name, err, all...)
	}
	return err
}

// activate has LVM activate logical volumes. pools are the thin pools among and below them.
func (p *waker) activate(name string, pools []string, lvs ...string) error {
	var lacking error
	if len(pools) > 0 {
		lacking = p.provide(group.PoolTarget)
	}
	defer p.engine.Begin(name, name)()
	if left := p.leftParts(name, pools); len(left) > 0 {
		if _, err := p.change(p.tool.DeactivateCommand(name, left...)); err != nil {
			return fmt.Errorf("its parts are active without it, and cannot be deactivated: %w", err)
		}
	}
	_, err := p.change(p.tool.ActivateCommand(name, lvs...))
	return explained(err, lacking)
}

// leftParts returns the active parts of the thin pools that the kernel does not know. An
// activation that fails halfway leaves its pool's parts active, and from then on LVM refuses to
// activate the pool. A part that is read-only was activated by an administrator, who looks at it:
// LVM activates a part alone only in this way. Such a part is left alone.
func (p *waker) leftParts(name string, pools []string) (lvs []string) {
	now := p.mapped()
	for _, thin := range pools {
		p.onPool(name, thin, func(pool *group.ThinPool) {
			for _, part := range group.PartsOf(thin) {
				if device, is := now[group.MappingName(name, part)]; is && !device.ReadOnly && pool.Asleep() {
					lvs = append(lvs, part)
				}
			}
		})
	}
	return lvs
}

// inactive returns the inactive volumes by the groups that can activate them.
func (p *waker) inactive() map[string][]string {
	p.state.Lock()
	defer p.state.Unlock()
	byGroup := map[string][]string{}
	for _, g := range p.state.Units() {
		if !g.Changeable() {
			continue
		}
		for _, id := range slices.Sorted(maps.Keys(g.Volumes)) {
			if !g.Volumes[id].Active && p.state.twins(id) == nil {
				byGroup[g.Name] = append(byGroup[g.Name], id)
			}
		}
	}
	return byGroup
}

// made returns the uuid of a device that was just made, as the kernel tells it. It is empty if no
// device was made, if the kernel does not tell, or if the device is not this group's. The next
// report then has the uuid.
func (p *reader) made(name, lv string) (uuid string) {
	uuid, _ = p.config.Devices.UUID(group.MappingName(name, lv)) // empty with an error
	p.engine.With(name, func(g *group.Facts) {
		if g == nil || !strings.HasPrefix(uuid, "LVM-"+strings.ReplaceAll(g.UUID, "-", "")) {
			uuid = ""
		}
	})
	return uuid
}

// device returns the path and the identity of a logical volume's device.
func (p *reader) device(name, lv string) (path string, is provision.Identity) {
	p.engine.With(name, func(g *group.Facts) {
		if g != nil {
			path, is = g.DevicePath(lv), g.Identity(lv)
		}
	})
	return path, is
}

// reach makes the node of a logical volume lead to its device, which need not be active. The
// caller holds the group's lock. An error says where the node leads to.
func (p *waker) reach(ctx context.Context, name, lv string) error {
	path, is := p.device(name, lv)
	if is == "" { // the kernel did not tell when it was made
		p.refresh(ctx, name)
		path, is = p.device(name, lv)
	}
	if p.config.Devices.Leads(path, is) == nil {
		return nil // by now
	}
	if err := p.activateLocked(name, lv); err != nil {
		return fmt.Errorf("it cannot be activated: %w", err)
	}
	if p.config.Devices.Leads(path, is) == nil {
		return nil
	}
	// It was active, and LVM leaves the nodes of such a volume as they are.
	_, failure := p.change(p.tool.NodesCommand(name, lv))
	if err := p.config.Devices.Leads(path, is); err != nil {
		return errors.Join(fmt.Errorf("it is active, and its node is wrong: have the nodes made anew (vgmknodes %s/%s): %w", name, lv, err), failure)
	}
	return nil
}

// activated activates a volume whose node does not lead to its device and returns it; with a
// problem if the node still does not.
func (p *waker) activated(ctx context.Context, name, id string) (provision.Volume, error) {
	unlock, err := p.engine.UnitLocks.Lock(ctx, name)
	if err != nil {
		return provision.Volume{}, err
	}
	return run.Do(ctx, &p.engine.Tasks, func(ctx context.Context) (provision.Volume, error) {
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
