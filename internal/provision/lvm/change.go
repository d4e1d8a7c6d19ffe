package lvm

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision/engine"
	"berth.dev/berth/internal/provision/lvm/group"
)

// change changes a volume group until its plan has no step left.
type change struct {
	group string
	// id of the volume or snapshot.
	id string
	// grows is the thin pool that promises more by this change; empty if none does.
	grows string
	// plan returns the step that is left, nil for none, or why it cannot be taken. fresh says
	// that LVM was asked just now. g is nil if there is no such group.
	plan func(g *group.Facts, fresh bool) (*group.Step, error)
	// begins, if set, is called before the step is taken.
	begins func()
}

// changer changes groups.
type changer struct {
	*waker
	// mends are the groups that are being mended.
	mends checks
}

// backend implements engine.Backend for LVM.
type backend struct{ *waker }

// Discover reads the groups that may have changed: all of them with one process if their list may
// have changed, too.
func (b backend) Discover(ctx context.Context) error {
	names, all := b.state.due()
	if all {
		return b.refreshAll(ctx)
	}
	b.refreshEach(ctx, names)
	return nil
}

// Loaded does nothing: the leftovers of a crash are mended when LVM first answers for all groups.
func (b backend) Loaded(context.Context) {}

func (b backend) Refresh(ctx context.Context, name string) { b.refresh(ctx, name) }

// LookAgain reads a group again, and resumes the devices that a failed command left suspended.
func (b backend) LookAgain(ctx context.Context, name string) (cleared bool) {
	b.refresh(ctx, name)
	b.resume(name)
	return false
}

// Fit returns why a change would wait for ever, would change another group, or is about an id
// that two groups hold.
func (b backend) Fit(g *group.Facts, id string, steps []engine.Step[*group.Facts]) error {
	return cmp.Or(g.Answers(steps[0].Pool, time.Now()), b.state.twins(id))
}

func (b backend) Ended(context.Context, string) {}

// planned returns a change in the form that the engine carries out.
func (p *changer) planned(c change) engine.Change[*group.Facts] {
	made := engine.Change[*group.Facts]{
		Unit: c.group, ID: c.id,
		Plan: func(g *group.Facts, fresh bool) ([]engine.Step[*group.Facts], error) {
			s, err := c.plan(g, fresh)
			if s == nil || err != nil {
				return nil, err
			}
			before, devices := g.Seqno, g.Devices
			do := func(ctx context.Context) (func(*group.Facts), error) {
				if c.begins != nil {
					c.begins()
				}
				return p.execute(ctx, c.group, *s, before, devices)
			}
			return []engine.Step[*group.Facts]{{Do: do, Pool: s.Thin}}, nil
		},
	}
	if c.grows != "" {
		// For the first volume of a pool LVM deactivates that pool and activates it anew. If a
		// host's udev is late, it removes the old node of the pool's metadata after LVM has made
		// the new one. The check of the metadata then finds no device, and LVM says that the pool
		// needs a repair, which would be wrong.
		made.Prepare = func(context.Context) (roused bool, err error) { return p.rouse(c.group, c.grows) }
	}
	return made
}

// carryOut makes changes of one volume one after the other, under its lock and that of its group.
// The changes go on to their end even if the caller's context ends.
func (p *changer) carryOut(ctx context.Context, changes ...change) error {
	var planned []engine.Change[*group.Facts]
	for _, c := range changes {
		planned = append(planned, p.planned(c))
	}
	return p.engine.CarryOut(ctx, planned...)
}

// carryOutLocked is carryOut for a caller that holds the locks.
func (p *changer) carryOutLocked(ctx context.Context, c change) error {
	defer p.engine.Changed.Set()
	return p.engine.Make(ctx, p.planned(c), &engine.Hold{})
}

// decide says whether a change has no step left, or why it cannot be made.
func (p *changer) decide(c change) (done bool, err error) {
	steps, err := p.engine.Left(p.planned(c), false)
	return err == nil && len(steps) == 0, err
}

// planner plans changes at this moment.
func (p *reader) planner() group.Planner {
	return group.Planner{Tool: p.tool, Now: time.Now()}
}

// execute runs the command of a step. It returns a function that puts the effect into the facts.
// before and devices are the number of the group and its physical volumes when the step was planned.
func (p *changer) execute(ctx context.Context, name string, s group.Step, before uint64, devices []string) (learn func(*group.Facts), err error) {
	_, err = p.change(s.Command)
	p.look(name, s.Thin)
	if err != nil {
		return nil, fmt.Errorf("changing volume group %s: %w", name, err)
	}
	return p.learnt(ctx, name, s, before, devices), nil
}

// learnt returns a function that puts the effect of a step into the facts. The step advanced the
// group's number as often as LVM writes for it. If the number on the disk differs, others changed
// the group too, or this LVM writes more or less often. Then the group must be read again.
func (p *changer) learnt(ctx context.Context, name string, s group.Step, before uint64, devices []string) (learn func(*group.Facts)) {
	uuid := p.made(name, s.Makes)
	seqno, err := p.sequence(ctx, devices)
	foreseen := before + max(s.Writes, 1)
	return func(g *group.Facts) {
		s.Learn(g)
		if s.Makes != "" {
			g.UUIDs[s.Makes] = uuid
		}
		if err != nil {
			g.Seqno = max(g.Seqno, foreseen)
		}
		if err != nil || seqno != foreseen {
			p.engine.Touch(g)
		}
		g.Seqno = max(g.Seqno, seqno)
		if g.Area.Spend(); g.Area.Crowded() != "" {
			p.engine.Touch(g)
		}
		g.Own = p.engine.Moment()
		g.Pools.Tell()
	}
}

// sequence reads a group's number from its physical volumes. It returns the highest, since LVM
// writes them one after the other.
func (p *reader) sequence(ctx context.Context, devices []string) (highest uint64, err error) {
	err = fmt.Errorf("none of %v holds LVM metadata", devices)
	for _, d := range devices {
		if n, readErr := p.number(ctx, d); readErr == nil {
			highest, err = max(highest, n), nil
		}
	}
	return highest, err
}
