package lvm

import (
	"context"
	"errors"
	"fmt"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/duplicate"
	"berth.dev/berth/internal/run"
)

// goOn does what is to be done next about a copy of a thick volume.
func (p *Provisioner) goOn(ctx context.Context, name, id string) error {
	ctx, end, err := p.copying.begin(ctx, id)
	if err != nil {
		return nil // it is being deleted, and that goes on with it
	}
	defer end()
	if err = p.catchUp(ctx, name); err == nil {
		switch p.next(name, id) {
		case todoFill:
			err = p.fill(ctx, name, id)
		case todoDrop:
			err = p.carryOut(ctx, p.drop(name, id))
		}
	}
	if errors.Is(context.Cause(ctx), errHalted) {
		return nil
	}
	return err
}

func (p *Provisioner) next(name, id string) (next todo) {
	p.state.with(name, func(g *group) {
		if g != nil {
			next = g.next(id)
		}
	})
	return next
}

// catchUp reads a group again unless its number on the disk is the known one. A process that
// is ending, or a command that outlived the one that ran it, may have made a copy whole, or
// others a volume of what is to be wiped, and somebody may have used it since: to write to it
// once more would undo what they wrote.
func (p *Provisioner) catchUp(ctx context.Context, name string) error {
	unlock, err := p.groups.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	var devices []string
	var known uint64
	p.state.with(name, func(g *group) {
		if g != nil {
			devices, known = g.devices, g.seqno
		}
	})
	if seqno, err := p.sequence(ctx, devices); err == nil && seqno == known {
		return nil
	}
	p.refresh(ctx, name)
	if ctx.Err() != nil {
		return context.Cause(ctx) // and nothing was learnt
	}
	p.state.with(name, func(g *group) {
		if g != nil && g.silent != nil {
			err = g.usable("", p.config.Now())
		}
	})
	return err
}

// fill makes a copy whole, from the beginning each time, and records that it is.
func (p *Provisioner) fill(ctx context.Context, name, id string) error {
	if err := p.duplicate(ctx, name, id); err != nil {
		if ctx.Err() == nil {
			p.refresh(ctx, name) // its cow may have been given up, and then it is lost
		}
		return err
	}
	return p.carryOut(ctx, change{
		group: name, id: id,
		plan:    func(g *group, _ bool) (bool, int64, error) { return g.planWhole(id) },
		command: func(int64) run.Command { return p.config.wholeCommand(name, id) },
		learn: func(g *group, _ int64) {
			if c, left := g.find(id), g.pending[id]; c != nil && left != nil {
				c.copying, c.readOnly, left.tries = false, g.snapshots[id] != nil, tries{due: left.due}
				g.settled(id)
			}
		},
	})
}

// duplicate writes all that a copy is to hold.
func (p *Provisioner) duplicate(ctx context.Context, name, id string) error {
	var source string
	var want int64
	p.state.with(name, func(g *group) {
		if g != nil {
			source, want = g.fillsFrom(id)
		}
	})
	from, err := p.open(ctx, name, source)
	if err != nil {
		return fmt.Errorf("opening %s/%s: %w", name, source, err)
	}
	defer from.Close()
	switch size, err := from.Size(); {
	case err != nil:
		return fmt.Errorf("%w: looking how large %s/%s is: %w", provision.ErrUnavailable, name, source, err)
	case size != want:
		return fmt.Errorf("%w: %s/%s has %d bytes, and %d are to be copied", provision.ErrConflict, name, source, size, want)
	}
	to, err := p.hold(ctx, name, id)
	if err != nil {
		return fmt.Errorf("opening %s/%s to write it: %w", name, id, err)
	}
	defer to.Close()
	if err := p.catchUp(ctx, name); err != nil { // nobody else can fill it from now on
		return err
	}
	if p.next(name, id) != todoFill {
		return fmt.Errorf("%w: logical volume %s/%s was changed meanwhile", provision.ErrUnavailable, name, id)
	}
	if err := duplicate.Do(ctx, to, from, want, p.config.CopyStep); err != nil {
		return fmt.Errorf("%w: copying %s/%s: %w", provision.ErrUnavailable, name, source, err)
	}
	return nil
}

// open opens a logical volume for reading.
func (p *Provisioner) open(ctx context.Context, name, lv string) (Looker, error) {
	path, is, err := p.awake(ctx, name, lv)
	if err != nil {
		return nil, err
	}
	from, err := p.config.Devices.Look(path, is)
	if err != nil {
		return nil, provision.Unavailable(err)
	}
	return from, nil
}

// cow takes a copy-on-write snapshot of a volume for a copy. From then on what the copy
// is to hold is fixed. plan says whether there is the copy already, or why there cannot be.
func (p *Provisioner) cow(name, id, of string, plan func(*group) (done bool, err error)) change {
	var how provision.Wipe
	begun := false
	return change{
		group: name, id: id, makes: cowName(id), writes: cowMakes,
		plan: func(g *group, _ bool) (done bool, size int64, err error) {
			if done, err = plan(g); done || err != nil {
				return done, 0, err
			}
			if begun && g.kept(id) == nil {
				return true, 0, nil // the command failed, and had made it
			}
			how = g.volumes[of].wipe
			size, err = g.planCow(id, of)
			return false, size, err
		},
		command: func(size int64) run.Command {
			begun = true
			return p.config.cowCommand(name, id, of, size, how)
		},
		learn: func(g *group, size int64) {
			left := g.pendingOf(id)
			left.cow, left.due = &cow{of: of, size: size, wipe: how}, p.config.Now()
		},
	}
}

// drop gives up a copy-on-write snapshot. What the volume held before it was overwritten
// is below it, and is wiped as the volume would be.
func (p *Provisioner) drop(name, id string) change {
	wiped := true
	p.state.with(name, func(g *group) {
		if g != nil && g.next(id) == todoDrop {
			wiped = g.pending[id].cow.wipe != provision.WipeNone
		}
	})
	c := change{
		group: name, id: id, writes: cowMakes,
		plan:    func(g *group, _ bool) (bool, int64, error) { return g.planDrop(id) },
		command: func(int64) run.Command { return p.config.removeCommand(name, cowName(id)) },
		learn: func(g *group, _ int64) {
			if left := g.pending[id]; left != nil && left.cow != nil {
				if wiped {
					g.wiping[cowName(id)] = &remnant{size: left.cow.size, how: left.cow.wipe}
				}
				left.cow = nil
				g.settled(id)
			}
		},
	}
	if wiped {
		c.writes, c.command = 1, func(int64) run.Command { return p.config.splitCommand(name, id) }
	}
	return c
}

// cowable returns why the kernel can take no copy-on-write snapshot for a copy that is not
// there yet, if it cannot.
func (p *Provisioner) cowable(id string) error {
	if p.state.holds(id) {
		return nil
	}
	return p.provide(cowTarget)
}
