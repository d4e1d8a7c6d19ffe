package owner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/record"
)

// copies is the medium of copies in the node's pools. What the node knows is beside the data, but for what
// the journal has: whether pods may have the volume, whether it was flushed, and when its points were made.
type copies struct{ Pools }

// Copies is the Medium of copies.
func Copies(p Pools) Medium { return copies{p} }

func (copies) data() bool { return true }

// recall reads the journal and then the copy: a volume that is not here has an empty one.
func (c copies) recall(ctx context.Context, o *Owner, l *look) (err error) {
	if l.kept, l.known, err = o.c.World.Load(l.id); err != nil {
		return err
	}
	l.replica, err = c.State(ctx, l.id)
	if errors.Is(err, provision.ErrNotFound) {
		l.replica, err = provision.Replica{}, nil
	}
	l.facts.Copy = l.replica.Copy
	l.facts.Copy.Flushed = l.kept.Flushed
	return err
}

// identify: the record beside the data has the history of the volume, and the rules compare it.
func (copies) identify(*Owner, *look, *v1alpha1.Volume) error { return nil }

func (copies) survey(_ context.Context, o *Owner, l *look) {
	f := &l.facts
	f.Keep = spare
	o.hinted(l.id, func(h *hint) {
		l.trouble = errors.Join(l.trouble, h.failed)
		f.Full = h.fullUntil.After(f.Now)
		if f.Record != nil {
			h.interval = f.Record.Failover.Interval()
		}
		if f.SnapshotDue = h.due(&l.kept, f.Copy.Tip(), f.Now); f.SnapshotDue && !f.Copy.Dirty {
			h.unchanged = f.Now // nothing was written, so the next look is an interval away
		}
	})
}

// due says whether a snapshot is due: an interval has passed since the newest point, and since the copy was
// found unchanged.
func (h *hint) due(k *journal.Kept, tip lineage.Point, now time.Time) bool {
	age, known := k.Age(tip, now)
	return h.interval > 0 && (!known || age >= h.interval) && now.Sub(h.unchanged) >= h.interval
}

// mark has the journal know of a volume before an epoch is opened: Vouch looks for open epochs there.
func (c copies) mark(ctx context.Context, o *Owner, l *look, m provision.Mark) error {
	if !m.Opened.IsZero() && !l.known {
		if err := (actor{o}).keep(l, func(*journal.Kept) error { return nil }); err != nil {
			return err
		}
	}
	return c.Mark(ctx, l.id, m)
}

func (c copies) carryOut(ctx context.Context, o *Owner, l *look, do ownership.Action) (more bool, err error) {
	switch do.Verb {
	case ownership.Pull:
		return false, c.pull(ctx, o, l, do)
	case ownership.Grow:
		return true, c.grow(ctx, o, l, do.Size)
	case ownership.Snapshot:
		if err := saw(o, l, do.To); err != nil {
			return false, err
		}
		return true, c.Snapshot(ctx, provision.PointRequest{Volume: l.id, Point: do.To})
	case ownership.Preserve:
		return true, c.Preserve(ctx, l.id, do.To)
	case ownership.RollBack:
		return true, c.RollBack(ctx, l.id, do.To)
	case ownership.Drop:
		err := c.Drop(ctx, l.id, do.Points)
		if errors.Is(err, provision.ErrInUse) { // a peer has asked for one meanwhile
			return false, nil
		}
		return true, err
	case ownership.Condemn:
		return true, c.Mark(ctx, l.id, provision.Mark{Fate: &provision.Fate{Condemned: true, DestroyAt: do.Until}})
	case ownership.Quarantine:
		return true, c.Mark(ctx, l.id, provision.Mark{Fate: &provision.Fate{Quarantined: true, DestroyAt: do.Until}})
	case ownership.Reprieve:
		return true, c.Mark(ctx, l.id, provision.Mark{Fate: &provision.Fate{}})
	case ownership.Destroy:
		return true, c.Destroy(ctx, l.id)
	}
	return false, fmt.Errorf("%w: the rules ask to %v volume %s, which is a copy", provision.ErrUnsupported, do.Verb, l.id)
}

// saw notes durably how old a point is, before there is one: what is noted afterwards would make it younger
// than it is, if the agent ends between the two.
func saw(o *Owner, l *look, p lineage.Point) error {
	return (actor{o}).keep(l, func(k *journal.Kept) error {
		k.Saw(p, l.facts.Now, l.facts.Copy.Has)
		return nil
	})
}

// grow makes the copy larger. One for which there is no room stays, and the rules are told so for a while.
func (c copies) grow(ctx context.Context, o *Owner, l *look, size int64) error {
	err := c.Make(ctx, l.object, size)
	if errors.Is(err, provision.ErrNoSpace) {
		o.hinted(l.id, func(h *hint) { h.fullUntil, h.failed = l.facts.Now.Add(unroomy), err })
		return nil
	}
	return err
}

// ready aborts what was received half, and makes the head follow the newest point.
func (c copies) ready(ctx context.Context, o *Owner, l *look) (provision.Content, error) {
	if c.stopFetch(o, l.id) {
		return provision.Content{}, fmt.Errorf("%w: volume %s: a stream from another node is being ended", provision.ErrUnavailable, l.id)
	}
	if l.replica.Receiving != nil {
		if err := c.Abort(ctx, l.id); err != nil {
			return provision.Content{}, err
		}
	}
	v, err := c.Writable(ctx, l.id)
	return v.Content, err
}

// flushed: the last unmount writes everything into the copy, and the guard proves that it was the last. A container
// that is being killed may have the volume mounted for itself, and write for as long as its last command takes.
func (copies) flushed(ctx context.Context, o *Owner, l *look) error {
	return (actor{o}).closeAtGuard(ctx, l)
}

// stirs says whether a snapshot is due.
func (copies) stirs(_ context.Context, o *Owner, k *journal.Kept) (due bool) {
	now, tip := o.c.World.Now(), lineage.Point{}
	if n := len(k.Seen); n > 0 {
		tip = k.Seen[n-1].Point
	}
	o.hinted(k.Volume, func(h *hint) { due = h.due(k, tip, now) })
	return due
}

// rests is how long a copy is left alone after a decision.
func (copies) rests(do ownership.Action) time.Duration {
	if do.Verb == ownership.Wait {
		return waits
	}
	return settled
}

// answer adds how old the newest data of the volume is, and confirms to a node that is to destroy its copy that
// this one has all of it, and keeps it for a while. It takes no lock: a hold only ever keeps a point, and
// the pool refuses one that is gone.
func (c copies) answer(ctx context.Context, o *Owner, l *look, asker string, v *ownership.Volume, p *ownership.Peer) error {
	if v == nil {
		object, err := o.c.World.Read(ctx, l.id)
		if v, err = record.Read(l.id, object, err); err != nil {
			p.Age = unknownAge
			return nil //nolint:nilerr // the copy is worth an answer, and what is not known of it is said
		}
	}
	now, newest := o.c.World.Now(), v.Newest(p.Copy.Points)
	age, known := l.kept.Age(newest, now)
	if p.Age = age; !known {
		p.Age = unknownAge
	}
	if e, _ := v.Replica(asker); e.State != ownership.Removing {
		return nil
	}
	hold, may := ownership.Confirm(&p.Copy, asker, newest, now)
	if !may {
		return nil
	}
	err := c.Hold(ctx, l.id, hold)
	p.Confirmed = err == nil
	return err
}
