package zfs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// change brings a zpool to where its plan has no steps left.
type change struct {
	zpool, id string
	// plan says what is left to do, from what is known, or why it cannot be done. It is
	// made again whenever the facts are not as expected, so what a crash left half done
	// is only another place to begin. z is nil if there is no such zpool.
	plan func(z *zpool) ([]step, error)
	// refused classifies a failure that the facts do not explain; nil leaves it as it
	// is, which is transient.
	refused func(z *zpool, failure error) error
}

// step is one ZFS process.
type step struct {
	command run.Command
	// check, if set, says why the step must not be taken.
	check func() error
	// settle, if set, waits for those who hold what the step needs for a moment only.
	settle func(ctx context.Context)
	// learn puts the step into what is known.
	learn func(z *zpool)
}

// attempts bound how often a plan is made again: others may change the zpool as fast.
const attempts = 4

// carryOut makes a change under the locks of its id and its zpool, and to its end: a
// caller whose context ends leaves it to itself.
func (p *Provisioner) carryOut(ctx context.Context, c change) error {
	unlockID, err := p.ids.Lock(ctx, c.id)
	if err != nil {
		return err
	}
	return p.carryOutFor(ctx, c, unlockID)
}

// carryOutFor is carryOut for who holds the id's lock, which it gives back.
func (p *Provisioner) carryOutFor(ctx context.Context, c change, unlockID func()) error {
	unlock, err := p.zpools.Lock(ctx, c.zpool)
	if err != nil {
		unlockID()
		return err
	}
	_, err = run.Do(ctx, &p.tasks, func(ctx context.Context) (struct{}, error) {
		defer unlockID()
		defer unlock()
		err := p.carryOutLocked(ctx, c)
		p.sweep(ctx, c.zpool)
		return struct{}{}, err
	})
	return err
}

func (p *Provisioner) carryOutLocked(ctx context.Context, c change) error {
	steps, err := p.decide(c)
	if err != nil { // what is known may be behind
		p.refresh(ctx, c.zpool)
		steps, err = p.decide(c)
	}
	var failed step
	var failure error
	for range attempts {
		if err != nil || len(steps) == 0 {
			return err // the facts explain the failure, or it was done all the same
		}
		if failure != nil && slices.Equal(steps[0].command.Args, failed.command.Args) {
			break
		}
		failed, failure = p.take(ctx, c.zpool, steps)
		p.signal()
		if failure == nil {
			return nil
		}
		p.refresh(ctx, c.zpool)
		steps, err = p.decide(c)
	}
	return p.refusal(c, failure)
}

func (p *Provisioner) decide(c change) (steps []step, err error) {
	p.state.with(c.zpool, func(z *zpool) {
		steps, err = c.plan(z)
		if err == nil && len(steps) > 0 && z.unfit != "" {
			err = fmt.Errorf("%w: %s", provision.ErrUnavailable, z.unfit)
		}
	})
	return steps, err
}

// take takes steps until one fails.
func (p *Provisioner) take(ctx context.Context, name string, steps []step) (failed step, failure error) {
	p.busy(name, p.config.Now())
	defer p.busy(name, time.Time{})
	for _, s := range steps {
		if s.check != nil {
			if err := s.check(); err != nil {
				return s, err
			}
		}
		if err := p.run(ctx, s); err != nil {
			return s, fmt.Errorf("changing zpool %s: %w", name, err)
		}
		p.learn(name, s)
	}
	return step{}, nil
}

// runs bound how often a command is tried that may be in somebody's way: udev looks
// at a zvol when it is made, and when it is renamed.
const runs = 3

func (p *Provisioner) run(ctx context.Context, s step) (err error) {
	for range runs {
		if _, err = p.config.Runner.Change(s.command); err == nil || s.settle == nil {
			return err
		}
		s.settle(ctx)
	}
	return err
}

func (p *Provisioner) learn(name string, s step) {
	p.state.with(name, func(z *zpool) {
		if z != nil && !z.read.IsZero() { // it may have gone and come back meanwhile
			s.learn(z)
		}
	})
}

func (p *Provisioner) busy(name string, since time.Time) {
	p.state.with(name, func(z *zpool) {
		if z != nil {
			z.busySince = since
		}
	})
}

func (p *Provisioner) refusal(c change, failure error) error {
	err := failure
	p.state.with(c.zpool, func(z *zpool) {
		if z != nil && c.refused != nil && z.silent == nil {
			err = c.refused(z, failure)
		}
	})
	return err
}
