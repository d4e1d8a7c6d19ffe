package owner

import (
	"context"
	"errors"
	"time"

	"berth.dev/berth/internal/ownership"
)

const (
	// movePause is how long an attach or a detach that failed waits for the next attempt, and a disk that does not answer
	// for the next look.
	movePause = 5 * time.Second
	// attaching is how often a disk is looked at whose attach another process makes.
	attaching = time.Second
)

// Tend does the upkeep of a volume that no kubelet asks for. again is when it is to be tended next if
// nothing happens before; zero is never.
func (o *Owner) Tend(ctx context.Context, id string) (again time.Duration, err error) {
	defer o.hinted(id, (*hint).endTended)
	out, err := o.follow(ctx, id, &asking{})
	if err != nil {
		return 0, err
	}
	switch do := out.do; {
	case do.Verb == ownership.Wait && do.Reason == ownership.BeingAttached && out.away:
		return movePause, nil // each look reads the record, and a target that is away may have a thousand disks
	case do.Verb == ownership.Wait && do.Reason == ownership.BeingAttached:
		return attaching, nil
	case do.Verb == ownership.Wait && do.Reason == ownership.AttachmentFailed:
		return movePause, nil
	case do.Verb == ownership.Wait && do.Reason == ownership.RecordUnread:
		return movePause, out.trouble
	case do.Verb == ownership.Wait && do.Reason == ownership.ReservationForgotten: // no event tells when the target knows it again
		return 0, &NotNowError{Volume: id, Why: do.Why, Cause: out.trouble}
	}
	again = o.c.Medium.rests(out.do)
	// A kubelet that gave up asking leaves an epoch behind. If its time has passed since the decision, the volume is due
	// now: nothing else may ever have it tended again.
	o.hinted(id, func(h *hint) {
		if left := h.wanted.Sub(out.at); left > 0 && (again == 0 || left < again) {
			again = left
		}
	})
	return again, nil
}

// Watch pokes the volumes that pods of this node may have, and about which the rules have something to say
// that no change of their record shows. It asks no API server, and is to be called every second or so.
func (o *Owner) Watch(ctx context.Context) error {
	ids, err := o.c.World.Volumes()
	if err != nil {
		return err
	}
	down := o.c.World.ShutDowns()
	for _, id := range ids {
		k, _, err := o.c.World.Load(id)
		if err != nil || !k.InUse(o.c.Boot) {
			continue
		}
		if o.c.Medium.stirs(ctx, o, &k) || !k.GaveUp(k.Opened) && shutDown(o.c.World, down, &k) {
			o.c.Poke(id, 0)
		}
	}
	return ctx.Err()
}

// Vouch gives the guard the word of this agent if it waits for it: every epoch of the node is closed,
// and unmounted, and nothing that began earlier opens one. It is to be called every second or so.
func (o *Owner) Vouch(ctx context.Context) error {
	standing, err := o.c.World.Standing(ctx)
	if err != nil {
		return err
	}
	if !standing.Fenced {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.fenced = false
		return nil
	}
	o.noteFence()
	ids, err := o.c.World.Volumes()
	if err != nil {
		return err
	}
	var open []error
	for _, id := range ids {
		if err := o.stop(ctx, id); err != nil {
			open = append(open, err)
		}
	}
	if len(open) > 0 {
		return errors.Join(open...)
	}
	// The record still says that this node owns what it closed, and nothing else may happen to the volume.
	for _, id := range ids {
		o.c.Poke(id, 0)
	}
	return o.c.World.AllClosed(ctx)
}

// stop closes the epoch of a volume and unmounts it, and needs no record for that. It takes the
// volume's lock in any case: a decision from before the lapse may be about to open an epoch.
func (o *Owner) stop(ctx context.Context, id string) error {
	for range decisions {
		over := false
		err := o.alone(ctx, id, func(ctx context.Context) error {
			l, err := o.gather(ctx, id, &asking{unstaging: true})
			if err != nil {
				return err
			}
			if err := (actor{o}).tellGuard(ctx, l); err != nil {
				return err
			}
			if over = !l.facts.Mounted && l.facts.Copy.GaveUp(l.facts.Copy.Opened); over {
				return nil
			}
			said, do := o.c.Rules.Next(&l.facts)
			if do.Verb <= ownership.GiveUp {
				return &NotNowError{Volume: id, Why: said.Why, Cause: l.trouble}
			}
			_, err = (actor{o}).carryOut(ctx, l, do, &asking{unstaging: true})
			return err
		})
		if err != nil || over {
			return err
		}
	}
	return &NotNowError{Volume: id, Why: ownership.Why{Reason: ownership.CopyInUse}}
}
