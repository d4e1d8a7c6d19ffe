package owner

import (
	"context"
	"errors"
	"slices"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// errNotNeeded is the cause of the end of a stream that the copy does not need any more.
var errNotNeeded = errors.New("the stream is not needed any more")

// pull begins to fetch a point in the background, without the lock. One stream of a volume is under way at a
// time: a newer point waits for it, and one that the volume does not hold any more is ended.
func (c copies) pull(ctx context.Context, o *Owner, l *look, do ownership.Action) error {
	do.To = target(l, do)
	began, stale := false, false
	fetch, end := context.WithCancelCause(context.WithoutCancel(ctx))
	o.hinted(l.id, func(h *hint) {
		if began = !h.moving; began {
			h.moving, h.fetching, h.end = true, do.To, end
		}
		stale = !began && !l.facts.Record.Holds(h.fetching)
	})
	if stale {
		c.stopFetch(o, l.id)
	}
	if !began {
		return nil
	}
	if _, known := l.kept.Age(do.To, l.facts.Now); !known { // the data is as old as when it was asked for first
		if err := saw(o, l, do.To); err != nil {
			c.fetched(o, l.id, err)
			return err
		}
	}
	f := Fetch{
		Volume: l.id, From: do.From, Epoch: l.facts.Copy.Promise.Epoch, Base: do.Base, To: do.To,
		Awaited: l.facts.Wanted || slices.Contains(l.facts.Record.Writing(), o.c.Node),
	}
	o.c.Background(func(ctx context.Context) {
		stop := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
		defer stop()
		defer end(nil)
		err := c.Fetch(fetch, f)
		c.fetched(o, f.Volume, err)
		if err != nil && ctx.Err() == nil {
			o.c.Log.Info("a snapshot did not arrive, trying again", "volume", f.Volume, "from", f.From, "snapshot", f.To, "reason", err.Error())
		}
		o.c.Poke(f.Volume, pauseAfter(err))
	})
	return nil
}

// target is the point to fetch: the one of which a part is here already, if the volume still holds it. While the volume
// is written its newest point is another one at each try, and a copy that takes longer than its link lasts would begin
// anew for ever.
func target(l *look, do ownership.Action) lineage.Point {
	r := l.replica.Receiving
	if r != nil && r.Token != "" && r.From == do.From && r.Base == do.Base && l.facts.Record.Holds(r.Target) {
		return r.Target
	}
	return do.To
}

// fetched notes the end of a stream.
func (copies) fetched(o *Owner, id string, err error) {
	o.hinted(id, func(h *hint) { h.moving, h.failed, h.end = false, err, nil })
}

// stopFetch ends the stream of a volume that is under way, and says whether there is one.
func (copies) stopFetch(o *Owner, id string) (underWay bool) {
	o.hinted(id, func(h *hint) {
		if underWay = h.moving; underWay {
			h.end(errNotNeeded)
		}
	})
	return underWay
}

// pauseAfter is how long the rules are left alone after a stream.
func pauseAfter(err error) time.Duration {
	if err == nil || errors.Is(err, errNotNeeded) {
		return 0
	}
	return movePause // also for one that was cut: a peer that cuts each stream is not asked all the time
}

// Stock returns what this node sends to others: what is in a stock, to nodes that the record names. A
// stream begins under the volume's lock, so that no point goes between the decision and the hold.
func (o *Owner) Stock(s stream.Stock) stream.Stock { return stock{o, s} }

type stock struct {
	*Owner
	stream.Stock
}

// Open implements stream.Stock. The record is read before the lock is taken: a stranger does not wait in
// the way of the volume's own work.
func (s stock) Open(ctx context.Context, want wire.Want) (source stream.Source, err error) {
	v, may, err := mayAsk(ctx, s.c.World, want.Volume, want.To)
	switch {
	case err != nil:
		return nil, wire.Errorf(wire.Busy, "%v", err)
	case !may || v == nil || !v.Kind.Traits().Data:
		return nil, wire.Errorf(wire.NotReplica, "node %s has no replica of volume %.80q", want.To, want.Volume)
	}
	wait, cancel := context.WithTimeout(ctx, lockWithin)
	defer cancel()
	opened := false
	err = s.alone(wait, want.Volume, func(context.Context) (err error) {
		opened = true
		source, err = s.Stock.Open(ctx, want) // the stream goes on without the lock, until its own context ends
		return err
	})
	if err != nil && !opened {
		return nil, wire.Errorf(wire.Busy, "volume %s is busy on this node: %v", want.Volume, err)
	}
	return source, err
}

// lockWithin is how long a stream waits for what else is done with its volume. The stream keeps a place of the
// node's meanwhile, which others need: if the volume hangs, they get it.
const lockWithin = 10 * time.Second
