package iscsi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/iscsi/scsi"
	"berth.dev/berth/internal/provision/shared"
)

// attachLimit is how long an attach may take: a login for each portal, and a search for the unit.
const attachLimit = 3 * time.Minute

// Attach implements shared.Disks. It waits for a look that is under way, and for nothing else.
func (p *Disks) Attach(ctx context.Context, d shared.Disk) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	h, err := ParseHandle(d.Handle)
	if err != nil {
		return fmt.Errorf("%w: volume %s: %w", provision.ErrInvalid, d.Volume, err)
	}
	if d.Identity == "" {
		return errNameless(d)
	}
	patient, cancel := context.WithTimeoutCause(ctx, p.c.Patience, errPatience)
	defer cancel()
	s, other := p.sit(patient, h, attaching)
	switch {
	case s != nil:
	case other == attaching:
		return nil
	default:
		return underWayError(other)
	}
	p.tasks.Go(func() {
		defer p.leave(h, s)
		limited, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), attachLimit, errPatience)
		defer cancel()
		s.failed = call{p, s, h, d}.attach(limited)
	})
	return nil
}

func (c call) attach(ctx context.Context) error {
	unlock, err := c.targets.Lock(ctx, c.Target)
	if err != nil {
		return err
	}
	defer unlock()
	at, err := c.find()
	if err != nil || at.unit != nil && c.failed == nil {
		return err
	}
	if at.session == nil {
		if err := (initiator{c}).login(ctx); err != nil {
			return err
		}
		if at, err = c.find(); err != nil {
			return err
		}
		if at.session == nil {
			return fmt.Errorf("%w: the session with target %s ended at once", provision.ErrUnavailable, c.Target)
		}
	}
	if at.unit == nil {
		if err := c.c.Kernel.Scan(ctx, *at.session, c.LUN); err != nil {
			return provision.Unavailable(fmt.Errorf("looking for unit %d: %w", c.LUN, err))
		}
		if at, err = c.find(); err != nil {
			return err
		}
		if at.unit == nil {
			return fmt.Errorf("%w: target %s has no unit %d for this node", provision.ErrNotFound, c.Target, c.LUN)
		}
	}
	return c.accept(ctx, at)
}

// accept refuses a disk that is another one, and a target that does not keep the promises: early, so that the
// attachment says so. What the promises are for is reserved later, and reserve asks again.
func (c call) accept(ctx context.Context, at place) error {
	n, err := c.open(ctx, at, false)
	if err != nil {
		return err
	}
	defer n.dev.Close()
	if err := n.promises(ctx); err != nil {
		return err
	}
	if _, err := n.execute(ctx, scsi.ReadReservation()); err != nil {
		return fmt.Errorf("target %s has no persistent reservations: %w", c.Target, err)
	}
	return nil
}

// Detach implements shared.Disks. It ends the session if that is vacant.
func (p *Disks) Detach(ctx context.Context, d shared.Disk) error {
	return p.do(ctx, d, detaching, func(ctx context.Context, c call) error {
		unlock, err := c.targets.Lock(ctx, c.Target)
		if err != nil {
			return err
		}
		defer unlock()
		at, err := c.find()
		if err != nil {
			return err
		}
		if at.unit != nil {
			if err := c.remove(at); err != nil {
				return err
			}
			if at, err = c.find(); err != nil {
				return err
			}
		}
		if at.session == nil || c.vacant(at.session) {
			if err := (initiator{c}).logout(at.session); err != nil {
				return err
			}
		}
		c.failed, c.lost, c.key, c.proved = nil, false, 0, nil
		return nil
	})
}

// remove makes the kernel forget the unit. It holds the device exclusively meanwhile, so that
// nothing mounts it. A device whose path is away may not open: then nothing can mount it either.
func (c call) remove(at place) error {
	if err := c.idle(at); err != nil {
		return err
	}
	if at.unit.Path != "" {
		dev, err := c.c.Kernel.Open(*at.unit, true)
		switch {
		case errors.Is(err, ErrBusy):
			return fmt.Errorf("%w: %s is mounted, or another device is made of it", provision.ErrInUse, at.unit.Path)
		case err == nil:
			defer dev.Close()
		case at.session.LoggedIn && at.unit.State == running:
			return provision.Unavailable(fmt.Errorf("opening %s: %w", at.unit.Path, err))
		}
	}
	if err := c.c.Kernel.Remove(*at.unit); err != nil {
		return provision.Unavailable(fmt.Errorf("removing %s: %w", at.unit.Address, err))
	}
	return nil
}
