package lvm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/group"
	"berth.dev/berth/internal/provision/wipe"
	"berth.dev/berth/internal/run"
)

// wiper wipes and removes remnants, the logical volumes of deleted volumes, in the background.
type wiper struct {
	*changer
	*chores
}

// mark deletes a volume that is to be wiped. One change replaces its tag. From then on it is no
// volume any more, even if the wiping fails. mark does not lock the group while the volume may be
// in use, since others need the lock.
func (p *wiper) mark(ctx context.Context, name, id string) error {
	unlock, err := p.engine.IDLocks.Lock(ctx, id)
	if err != nil {
		return err
	}
	_, err = run.Do(ctx, &p.engine.Tasks, func(ctx context.Context) (struct{}, error) {
		defer unlock()
		return struct{}{}, p.markLocked(ctx, name, id)
	})
	return err
}

func (p *wiper) markLocked(ctx context.Context, name, id string) error {
	c := change{group: name, id: id, plan: func(g *group.Facts, fresh bool) (*group.Step, error) { return p.planner().Mark(g, id, fresh) }}
	if done, _ := p.decide(c); done {
		return nil // deleted meanwhile, and perhaps held by the wiper
	}
	// LVM refuses to remove an open volume, and would not refuse this change. A process that
	// opens the device from now on keeps it from being wiped and removed until it closes it.
	if err := p.closed(ctx, group.MappingName(name, id), 0); err != nil {
		return fmt.Errorf("volume %s: %w", id, err)
	}
	unlock, err := p.engine.UnitLocks.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	defer p.nudge()
	return p.carryOutLocked(ctx, c)
}

// openPause is how soon to look again at a device that is open.
const openPause = 50 * time.Millisecond

// closed returns nil once a device is open no more often than the caller itself has it open
// (own). Udev opens a device for a moment whenever a writer has closed it, so closed waits for
// openPatience before it returns ErrInUse.
func (p *waker) closed(ctx context.Context, mapping string, own int) error {
	patience := time.NewTimer(openPatience)
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

// wipeRemnant wipes the part of a remnant that was not overwritten yet, and then removes the
// remnant. A process that opens it in between keeps LVM from removing it. No tenant's data is
// written to it meanwhile, since it is no volume.
func (p *wiper) wipeRemnant(ctx context.Context, name, id string) error {
	c := change{group: name, id: id, plan: func(g *group.Facts, _ bool) (*group.Step, error) { return p.planner().RemoveWiped(g, id) }}
	if done, err := p.decide(c); done || err != nil {
		return err
	}
	if there, err := p.wipeDevice(ctx, name, id); !there || err != nil {
		return err
	}
	return p.carryOut(ctx, c)
}

// wipeDevice wipes a remnant, unless it is a volume again: an administrator may have made it one,
// unnoticed by Berth, and then it is not there any more as a remnant. While the device is held no
// pod can begin to use it.
func (p *wiper) wipeDevice(ctx context.Context, name, id string) (there bool, err error) {
	h, err := p.hold(ctx, name, id)
	if err != nil {
		return false, err
	}
	defer h.Close()
	if err := p.catchUp(ctx, name); err != nil {
		return false, err
	}
	r, err := p.remnant(name, id)
	if r == nil {
		return false, err
	}
	size, err := h.Size()
	if err != nil {
		return false, fmt.Errorf("%w: looking how large it is: %w", provision.ErrUnavailable, err)
	}
	whole := wipe.Range{Length: size, Step: p.config.WipeStep, Done: r.Lasting()}
	err = wipe.Do(ctx, h, r.How, whole, p.progress(ctx, name, id, r.Wiped))
	if errors.Is(err, wipe.ErrNotZeros) {
		p.engine.With(name, func(g *group.Facts) { g.Doubt(id) })
	}
	return true, err
}

// remnant returns the facts about a remnant that may be wiped; nil if there is none, or with an
// error.
func (p *wiper) remnant(name, id string) (r *group.Remnant, err error) {
	p.engine.With(name, func(g *group.Facts) {
		there := false
		if there, err = group.Wipeable(g, id); there && err == nil {
			is := *g.Wiping[id]
			r = &is
		}
	})
	return r, err
}

// hold opens the device of a remnant or of a copy for writing, and makes sure that no other
// process has it open.
func (p *waker) hold(ctx context.Context, name, id string) (Holder, error) {
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
	if err := p.closed(ctx, group.MappingName(name, id), 1); err != nil {
		h.Close()
		return nil, err
	}
	return h, nil
}

// awake makes sure that a logical volume has its device, which may be absent after a restart of
// the machine. It returns the path of the device and the identity that proves it.
func (p *waker) awake(ctx context.Context, name, lv string) (path string, is provision.Identity, err error) {
	unlock, err := p.engine.UnitLocks.Lock(ctx, name)
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
