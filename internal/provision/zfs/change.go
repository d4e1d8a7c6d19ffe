package zfs

import (
	"context"
	"fmt"
	"slices"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
)

// change brings a zpool to where its plan has no steps left.
type change struct {
	zpool string
	// id is what it is about.
	id string
	// besides, if set, says which other volumes it is about, from what is known.
	besides func() besides
	// plan says what is left to do, from what is known, or why it cannot be done. It is
	// made again whenever the facts are not as expected, so what a crash left half done
	// is only another place to begin. z is nil if there is no such zpool.
	plan func(z *zpool) ([]step, error)
	// refused classifies a failure that the facts do not explain; nil leaves it as it
	// is, which is transient.
	refused func(z *zpool, failure error) error
	// undo, if set, plans what takes back what a change that failed left.
	undo func(z *zpool) []step
}

// besides are volumes that a change is about besides its own: one that it alters, and one whose
// snapshots must stay meanwhile; empty for none.
type besides struct{ alters, keeps string }

// attempts bound how often a plan is made again: others may change the zpool as fast.
const attempts = 4

// carryOut makes a change to its end: a caller whose context ends leaves it to itself.
// Nobody else changes meanwhile what it is about. What has nothing to do with it is changed
// at the same time, for ZFS writes that to the disks together; but the zpool is not read.
func (p *Provisioner) carryOut(ctx context.Context, c change) error {
	unlockIDs, err := p.lockIDs(ctx, c)
	if err != nil {
		return err
	}
	return p.carryOutFor(ctx, c, unlockIDs)
}

// lockIDs takes the locks of a change. Which volume a snapshot is of is sure once that volume is
// locked: until then another snapshot may have been taken under its name.
func (p *Provisioner) lockIDs(ctx context.Context, c change) (unlock func(), err error) {
	if c.besides == nil {
		return p.lockAll(ctx, c.id, besides{})
	}
	for {
		others := c.besides()
		if unlock, err = p.lockAll(ctx, c.id, others); err != nil || c.besides() == others {
			return unlock, err
		}
		unlock()
	}
}

// lockAll takes locks in the order of the ids, which all keep to.
func (p *Provisioner) lockAll(ctx context.Context, id string, b besides) (unlock func(), err error) {
	ids := slices.DeleteFunc([]string{id, b.alters, b.keeps}, func(id string) bool { return id == "" })
	slices.Sort(ids)
	var unlocks []func()
	unlock = func() {
		for _, u := range unlocks {
			u()
		}
	}
	for _, each := range slices.Compact(ids) {
		take := p.ids.Share
		if each == id || each == b.alters {
			take = p.ids.Lock
		}
		u, err := take(ctx, each)
		if err != nil {
			unlock()
			return nil, err
		}
		unlocks = append(unlocks, u)
	}
	return unlock, nil
}

// carryOutFor is carryOut for who holds the ids' locks, which it gives back.
func (p *Provisioner) carryOutFor(ctx context.Context, c change, unlockIDs func()) error {
	unlock, err := p.zpools.Share(ctx, c.zpool)
	if err != nil {
		unlockIDs()
		return err
	}
	_, err = run.Do(ctx, &p.tasks, func(ctx context.Context) (struct{}, error) {
		defer p.tidySoon(ctx, c.zpool)
		defer unlockIDs()
		return struct{}{}, p.carryOutSharing(ctx, c, &sharing{p, unlock})
	})
	return err
}

// sharing is who shares a zpool's lock.
type sharing struct {
	p      *Provisioner
	unlock func()
}

// lookAgain reads a zpool, which it gives back for that, and takes again. What is left over
// goes first: it may be what is in the way.
func (s *sharing) lookAgain(ctx context.Context, zpool string) (swept bool) {
	s.unlock()
	s.unlock = func() {}
	swept = s.p.sweep(ctx, zpool)
	if alone, err := s.p.zpools.Lock(ctx, zpool); err == nil {
		s.p.refresh(ctx, zpool)
		alone()
	}
	if unlock, err := s.p.zpools.Share(ctx, zpool); err == nil {
		s.unlock = unlock
	}
	return swept
}

func (p *Provisioner) carryOutSharing(ctx context.Context, c change, s *sharing) error {
	defer func() { s.unlock() }()
	defer p.state.with(c.zpool, func(z *zpool) { z.end(c.id) })
	err := p.attempt(ctx, c, s)
	if err != nil {
		p.takeBack(ctx, c)
	}
	return err
}

// attempt takes the steps of a change, and looks again whenever one fails.
func (p *Provisioner) attempt(ctx context.Context, c change, s *sharing) error {
	steps, err := p.decide(c)
	if err != nil { // what is known may be behind
		s.lookAgain(ctx, c.zpool)
		steps, err = p.decide(c)
	}
	var failed step
	var failure error
	swept := false
	for range attempts {
		if err != nil || len(steps) == 0 {
			return err // the facts explain the failure, or it was done all the same
		}
		if failure != nil && !swept && slices.Equal(steps[0].command.Args, failed.command.Args) {
			break
		}
		if failed, failure = p.take(ctx, c, steps); failure == nil {
			return nil
		}
		swept = s.lookAgain(ctx, c.zpool)
		steps, err = p.decide(c)
	}
	return p.refusal(c, failure)
}

// decide plans what is left to do, and holds the room for it.
func (p *Provisioner) decide(c change) (steps []step, err error) {
	p.state.with(c.zpool, func(z *zpool) {
		z.end(c.id)
		steps, err = c.plan(z)
		if err == nil && len(steps) > 0 && z.unfit != "" {
			err = fmt.Errorf("%w: %s", provision.ErrUnavailable, z.unfit)
		}
		if err == nil && len(steps) > 0 {
			z.begin(c.id, p.config.Now(), steps)
		}
	})
	return steps, err
}

// take takes the steps of a change until one fails.
func (p *Provisioner) take(ctx context.Context, c change, steps []step) (failed step, failure error) {
	defer p.signal()
	for _, s := range steps {
		if s.check != nil {
			if err := s.check(); err != nil {
				return s, err
			}
		}
		if s.begun != nil {
			s.begun()
		}
		if err := p.run(ctx, s); err != nil {
			return s, fmt.Errorf("changing zpool %s: %w", c.zpool, err)
		}
		p.state.with(c.zpool, func(z *zpool) {
			if z != nil && !z.read.IsZero() { // it may have gone and come back meanwhile
				s.learn(z)
				z.fulfil(c.id, s)
			}
		})
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

// takeBack undoes what a change that failed did not finish. What cannot be undone is there,
// and is said to be.
func (p *Provisioner) takeBack(ctx context.Context, c change) {
	var steps []step
	p.state.with(c.zpool, func(z *zpool) {
		if z != nil && c.undo != nil && z.answers(p.config.Now()) == nil {
			steps = c.undo(z)
		}
	})
	_, _ = p.take(ctx, c, steps)
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
