package lvm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/wipe"
	"berth.dev/berth/internal/run"
)

// mark deletes a volume that is to be wiped: from the one change on that turns its tag
// it is no volume any more, whatever becomes of the wiping. The group is not locked
// while the volume may be in use: others need it.
func (p *Provisioner) mark(ctx context.Context, name, id string) error {
	unlock, err := p.volumes.Lock(ctx, id)
	if err != nil {
		return err
	}
	_, err = run.Do(ctx, &p.tasks, func(ctx context.Context) (struct{}, error) {
		defer unlock()
		return struct{}{}, p.markLocked(ctx, name, id)
	})
	return err
}

func (p *Provisioner) markLocked(ctx context.Context, name, id string) error {
	var found carved
	c := change{
		group: name, id: id,
		plan: func(g *group, fresh bool) (done bool, size int64, err error) {
			if done, size, err = g.planDelete(id, fresh); !done {
				found = *g.find(id)
			}
			return done, size, err
		},
		command: func(int64) run.Command { return p.config.markCommand(name, id, found) },
		learn:   func(g *group, _ int64) { g.bury(id) },
	}
	done, _, err := p.decide(c, false)
	if errors.Is(err, provision.ErrInUse) { // by something that is known, which may be gone
		p.refresh(ctx, name)
		done, _, err = p.decide(c, false)
	}
	if done || errors.Is(err, provision.ErrInUse) {
		return err // deleted meanwhile, and perhaps held by who wipes it
	}
	// LVM refuses to remove what is open, and would not refuse this. Whoever opens the
	// device from now on keeps it from being wiped and removed until it is closed.
	if err := p.closed(ctx, mappingName(name, id), 0); err != nil {
		return fmt.Errorf("volume %s: %w", id, err)
	}
	unlock, err := p.groups.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	defer p.nudge()
	return p.carryOutLocked(ctx, c)
}

// openPause is how soon to look again at a device that is open.
const openPause = 50 * time.Millisecond

// closed returns nil once a device is open no more often than by who asks. Udev opens
// it for a moment whenever a writer has closed it, so ErrInUse has to wait a little.
func (p *Provisioner) closed(ctx context.Context, mapping string, own int) error {
	patience := time.NewTimer(p.config.OpenPatience)
	defer patience.Stop()
	pause := time.NewTicker(openPause)
	defer pause.Stop()
	for {
		opened, err := p.config.Devices.Opens(mapping)
		if err != nil {
			return fmt.Errorf("%w: looking whether it is open: %w", provision.ErrUnavailable, err)
		}
		if opened <= own {
			return nil
		}
		select {
		case <-pause.C:
		case <-patience.C:
			return fmt.Errorf("%w: it is open", provision.ErrInUse)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// wipeRemnant wipes what was not overwritten yet, and then removes it. Whoever opens it in the
// meantime keeps it, and nobody writes a tenant's bytes to what is no volume.
func (p *Provisioner) wipeRemnant(ctx context.Context, name, id string) error {
	plan := func(g *group, _ bool) (done bool, size int64, err error) {
		done, err = g.planRemove(id)
		return done, 0, err
	}
	c := change{group: name, id: id, plan: plan,
		command: func(int64) run.Command { return p.config.removeCommand(name, id) },
		learn:   func(g *group, _ int64) { delete(g.wiping, id) },
	}
	if done, _, err := p.decide(c, false); done || err != nil {
		return err
	}
	if wiped, err := p.wipeDevice(ctx, name, id); !wiped || err != nil {
		return err
	}
	return p.carryOut(ctx, c)
}

// wipeDevice wipes a remnant, unless it is none any more: others may have made a volume of
// it again, and nobody noticed. Once the device is held its user cannot begin.
func (p *Provisioner) wipeDevice(ctx context.Context, name, id string) (wiped bool, err error) {
	h, err := p.hold(ctx, name, id)
	if err != nil {
		return false, err
	}
	defer h.Close()
	if err := p.catchUp(ctx, name); err != nil {
		return false, err
	}
	r, err := p.remnant(name, id)
	if r == nil || err != nil {
		return false, err
	}
	size, err := h.Size()
	if err != nil {
		return false, fmt.Errorf("%w: looking how large it is: %w", provision.ErrUnavailable, err)
	}
	whole := wipe.Range{Length: size, Step: p.config.WipeStep, Done: r.wiped}
	err = wipe.Do(ctx, h, r.how, whole, p.wiped(ctx, name, id, r.wiped))
	return err == nil, err
}

// remnant returns what is known of a remnant that may be wiped; nil if there is none.
func (p *Provisioner) remnant(name, id string) (r *remnant, err error) {
	p.state.with(name, func(g *group) {
		done := false
		if done, err = g.planRemove(id); !done && err == nil {
			is := *g.wiping[id]
			r = &is
		}
	})
	return r, err
}

// hold opens the device of a remnant, and makes sure that nobody else has it open.
func (p *Provisioner) hold(ctx context.Context, name, id string) (Holder, error) {
	path, is, err := p.awake(ctx, name, id)
	if err != nil {
		return nil, err
	}
	h, err := p.config.Devices.Hold(path, is)
	if errors.Is(err, ErrBusy) {
		return nil, fmt.Errorf("%w: it is mounted or held: lsblk %s on the node shows by what", provision.ErrInUse, path)
	}
	if err != nil {
		return nil, provision.Unavailable(err)
	}
	if err := p.closed(ctx, mappingName(name, id), 1); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// awake makes sure that a logical volume has its device, as it need not after a restart of
// the machine, and returns its path and what it is proved by.
func (p *Provisioner) awake(ctx context.Context, name, lv string) (path string, is provision.Identity, err error) {
	if path, is = p.device(name, lv); p.config.Devices.Leads(path, is) == nil {
		return path, is, nil
	}
	unlock, err := p.groups.Lock(ctx, name)
	if err != nil {
		return "", "", err
	}
	defer unlock()
	if err := p.reach(ctx, name, lv); err != nil {
		return "", "", provision.Unavailable(err)
	}
	path, is = p.device(name, lv)
	return path, is, nil
}
