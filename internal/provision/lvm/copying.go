package lvm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/duplicate"
	"berth.dev/berth/internal/provision/lvm/group"
)

// copier fills copies of thick volumes in the background.
type copier struct {
	*changer
	*chores
	// running are the copies that are being filled.
	running transfers
}

// goOn takes the next step of a copy of a thick volume.
func (p *copier) goOn(ctx context.Context, name, id string) error {
	ctx, end, err := p.running.begin(ctx, id)
	if err != nil {
		return nil // the copy is being deleted, and the deletion deals with it
	}
	defer end()
	if err = p.catchUp(ctx, name); err == nil {
		switch p.next(name, id) {
		case group.TodoFill:
			err = p.fill(ctx, name, id)
		case group.TodoDrop:
			err = p.carryOut(ctx, p.drop(name, id))
		}
	}
	if errors.Is(context.Cause(ctx), errHalted) {
		return nil
	}
	return err
}

func (p *copier) next(name, id string) (next group.Todo) {
	p.engine.With(name, func(g *group.Facts) {
		if g != nil {
			next = g.Next(id)
		}
	})
	return next
}

// catchUp reads a group again unless its number on the disk is the known one. A process of Berth
// that is ending, or a command that outlived the process that ran it, may have made a copy whole.
// An administrator may have made a remnant a volume again. A pod may have used either since, and
// one more write would destroy the pod's data.
func (p *reader) catchUp(ctx context.Context, name string) error {
	unlock, err := p.engine.UnitLocks.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	var devices []string
	var known uint64
	p.engine.With(name, func(g *group.Facts) {
		if g != nil {
			devices, known = g.Devices, g.Seqno
		}
	})
	if seqno, err := p.sequence(ctx, devices); err == nil && seqno == known {
		return nil
	}
	p.refresh(ctx, name)
	if ctx.Err() != nil {
		return context.Cause(ctx) // and nothing was learnt
	}
	p.engine.With(name, func(g *group.Facts) {
		if g != nil {
			err = g.Usable("", time.Now())
		}
	})
	return err
}

// fill fills a copy, from the beginning each time, and records that it is whole.
func (p *copier) fill(ctx context.Context, name, id string) error {
	if err := p.duplicate(ctx, name, id); err != nil {
		p.refresh(ctx, name) // the kernel may have given up its cow, and then the copy is lost
		return err
	}
	return p.carryOut(ctx, change{group: name, id: id, plan: func(g *group.Facts, _ bool) (*group.Step, error) { return p.planner().Whole(g, id) }})
}

// duplicate writes all the data of a copy.
func (p *copier) duplicate(ctx context.Context, name, id string) error {
	var source string
	var want int64
	p.engine.With(name, func(g *group.Facts) {
		if g != nil {
			source, want = g.FillsFrom(id)
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
	if err := p.catchUp(ctx, name); err != nil { // no other process can fill it from now on
		return err
	}
	if p.next(name, id) != group.TodoFill {
		return fmt.Errorf("%w: logical volume %s/%s was changed meanwhile", provision.ErrUnavailable, name, id)
	}
	if err := duplicate.Do(ctx, to, from, want, p.config.CopyStep); err != nil {
		return fmt.Errorf("%w: copying %s/%s: %w", provision.ErrUnavailable, name, source, err)
	}
	return nil
}

// open opens a logical volume for reading.
func (p *copier) open(ctx context.Context, name, lv string) (Looker, error) {
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

// cow takes a copy-on-write snapshot of a volume for a copy. From then on the contents of the
// copy are fixed. there says whether the copy exists already, or why it cannot be made.
func (p *copier) cow(name, id, of string, there func(*group.Facts) (done bool, err error)) change {
	begun := false
	return change{
		group: name, id: id, begins: func() { begun = true },
		plan: func(g *group.Facts, _ bool) (*group.Step, error) {
			if done, err := there(g); done || err != nil {
				return nil, err
			}
			if begun && g.Kept(id) == nil {
				return nil, nil // the command failed, but made it
			}
			return p.planner().Cow(g, id, of)
		},
	}
}

// drop gives up a copy-on-write snapshot.
func (p *copier) drop(name, id string) change {
	return change{group: name, id: id, plan: func(g *group.Facts, _ bool) (*group.Step, error) { return p.planner().Drop(g, id) }}
}

// cowable returns why the kernel cannot take a copy-on-write snapshot for a copy; nil if it can,
// or if the copy exists.
func (p *copier) cowable(id string) error {
	if p.state.holds(id) {
		return nil
	}
	return p.provide(group.CowTarget)
}
