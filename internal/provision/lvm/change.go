package lvm

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"berth.dev/berth/internal/run"
)

// change brings a volume group to where its plan is done, with one LVM process.
type change struct {
	group string
	// id of the volume or snapshot, and the thin pool it is in; empty if it is carved out
	// of the group.
	id, thin string
	// makes is the logical volume that is made, with a device; empty if none is.
	makes string
	// grows says that the thin pool promises more by this change.
	grows bool
	// writes is how often LVM writes the group's metadata for it; 0 means once.
	writes uint64
	// plan decides from what is known: whether nothing is left to do, the size to
	// make, or why it cannot be done. fresh says that LVM was asked just now. g is nil
	// if there is no such group.
	plan func(g *group, fresh bool) (done bool, size int64, err error)
	// command makes the change.
	command func(size int64) run.Command
	// learn puts the change into what is known; it may be there already.
	learn func(g *group, size int64)
}

// lock takes the locks of a volume and of a group, in this order. Callers whose
// context ends leave the queue.
func (p *Provisioner) lock(ctx context.Context, id, group string) (unlock func(), err error) {
	unlockVolume, err := p.volumes.Lock(ctx, id)
	if err != nil {
		return nil, err
	}
	unlockGroup, err := p.groups.Lock(ctx, group)
	if err != nil {
		unlockVolume()
		return nil, err
	}
	return func() { unlockGroup(); unlockVolume() }, nil
}

// carryOut makes changes of one volume one after the other, under its lock and that of
// its group, and to their end: a caller whose context ends leaves them to themselves.
func (p *Provisioner) carryOut(ctx context.Context, changes ...change) error {
	unlock, err := p.lock(ctx, changes[0].id, changes[0].group)
	if err != nil {
		return err
	}
	_, err = run.Do(ctx, &p.tasks, func(ctx context.Context) (none struct{}, _ error) {
		defer unlock()
		for _, c := range changes {
			if err := p.carryOutLocked(ctx, c); err != nil {
				return none, err
			}
		}
		return none, nil
	})
	return err
}

// carryOutLocked is carryOut for who holds the locks.
//
// What is known may be behind, so a plan that fails on it is made again from a fresh
// report. When the command fails a fresh report decides too: the change may have
// been made all the same, or have become impossible.
func (p *Provisioner) carryOutLocked(ctx context.Context, c change) error {
	done, size, err := p.decide(c, false)
	if !done && c.grows {
		if _, err := p.rouse(c.group, c.thin); err != nil {
			return err
		}
		done, size, err = p.decide(c, false)
	}
	if err != nil {
		p.refresh(ctx, c.group)
		done, size, err = p.decide(c, true)
	}
	if done || err != nil {
		return err
	}
	failure := p.execute(ctx, c, size)
	if failure != nil && c.grows {
		failure, err = p.executeAnew(ctx, c, failure)
	}
	if failure == nil || err != nil {
		return err
	}
	if done, _, err = p.decide(c, true); done || err != nil {
		return err
	}
	return fmt.Errorf("changing volume group %s: %w", c.group, failure)
}

// executeAnew makes a change whose command failed once more if the failure left its thin pool
// inactive and the pool can be activated. It returns how the command failed last, nil if it
// need not be run any more, or why the change cannot be made.
//
// Beneath the first volume of a pool LVM deactivates that pool and activates it anew. A host's
// udev that is behind takes the old node of the pool's metadata away after LVM has made the
// new one: the check of the metadata finds no device then, and LVM says that the pool needs
// a repair, which would be wrong.
func (p *Provisioner) executeAnew(ctx context.Context, c change, failure error) (still, err error) {
	roused, err := p.rouse(c.group, c.thin)
	if err != nil || !roused {
		return failure, err
	}
	done, size, err := p.decide(c, true)
	if done || err != nil {
		return nil, err
	}
	return p.execute(ctx, c, size), nil
}

// execute runs the command of a change and learns from it, or else from a fresh report.
func (p *Provisioner) execute(ctx context.Context, c change, size int64) (failure error) {
	before := p.begin(c.group)
	_, failure = p.change(c.command(size))
	p.end(c.group)
	p.look(c.group, c.thin)
	if failure == nil {
		p.learnt(ctx, c, size, before)
		return nil
	}
	p.refresh(ctx, c.group)
	p.resume(c.group)
	p.signal()
	return failure
}

func (p *Provisioner) decide(c change, fresh bool) (done bool, size int64, err error) {
	p.state.with(c.group, func(g *group) {
		if done, size, err = c.plan(g, fresh); !done && err == nil && g != nil {
			err = cmp.Or(g.answers(c.thin, p.config.Now()), p.state.twins(c.id))
		}
	})
	return done, size, err
}

// begin notes that a change runs and returns the group's number before it.
func (p *Provisioner) begin(name string) (seqno uint64) {
	p.state.with(name, func(g *group) {
		if g != nil {
			g.busySince, seqno = p.config.Now(), g.seqno
		}
	})
	return seqno
}

func (p *Provisioner) end(name string) {
	p.state.with(name, func(g *group) {
		if g != nil {
			g.busySince = time.Time{}
		}
	})
}

// learnt updates what is known after an own change. The change advanced the
// group's number as often as LVM writes for it; if the disk says otherwise, others
// changed the group too, or this LVM writes more or less often, and it must be read
// again.
func (p *Provisioner) learnt(ctx context.Context, c change, size int64, before uint64) {
	var devices []string
	p.state.with(c.group, func(g *group) {
		if g != nil {
			devices = g.devices
		}
	})
	uuid := p.made(c.group, c.makes)
	seqno, err := p.sequence(ctx, devices)
	foreseen := before + max(c.writes, 1)
	p.state.with(c.group, func(g *group) {
		if g == nil {
			return
		}
		c.learn(g, size)
		if c.makes != "" {
			g.uuids[c.makes] = uuid
		}
		if err != nil {
			g.seqno = max(g.seqno, foreseen)
		}
		if err != nil || seqno != foreseen {
			p.state.noticed(g)
		}
		g.seqno = max(g.seqno, seqno)
		if g.area.spend(); g.area.crowded() != "" {
			p.state.noticed(g)
		}
		g.own = p.state.clock.Now()
		g.tell()
	})
	p.signal()
}

// sequence reads a group's number from its physical volumes: the highest, since
// they are written one after the other.
func (p *Provisioner) sequence(ctx context.Context, devices []string) (highest uint64, err error) {
	err = fmt.Errorf("none of %v holds LVM metadata", devices)
	for _, d := range devices {
		if n, readErr := p.number(ctx, d); readErr == nil {
			highest, err = max(highest, n), nil
		}
	}
	return highest, err
}
