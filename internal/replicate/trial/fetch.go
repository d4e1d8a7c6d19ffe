package trial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/quantity"
	"berth.dev/berth/internal/replicate/copies"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// Leg is what became of one stream of a trial.
type Leg struct {
	// Name says what was fetched.
	Name string
	// Raw bytes of the stream, and Wire bytes on the link.
	Raw, Wire uint64
	Took      time.Duration
	// Tries is how many connections it took.
	Tries int
}

// Figures are what a trial measured.
type Figures struct {
	Legs []Leg
	// Compared is how many bytes of data were found to be as they were written.
	Compared int64
}

// tries is how often a stream is asked for; wait is the time between two.
const (
	tries = 5
	wait  = time.Second
)

// Fetch fetches the volume of a trial from the node that serves it, compares it, and deletes it here. dial
// opens a connection to that node.
func Fetch(ctx context.Context, s Side, from string, dial func(context.Context) (net.Conn, error)) (f Figures, err error) {
	id := Volume(from)
	if from == s.Identity.Node {
		return f, fmt.Errorf("%w: node %s cannot fetch from itself", provision.ErrInvalid, from)
	}
	if err := s.absent(ctx, id); err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, s.leave(ctx, from)) }()
	packer, err := wire.NewPacker(packing)
	if err != nil {
		return f, err
	}
	fetch := fetcher{Side: s, from: from, dial: dial, packer: packer}
	for _, leg := range []struct {
		name         string
		base, target lineage.Point
	}{{"in full", lineage.Point{}, whole}, {"an increment", whole, change}} {
		l, err := fetch.fetch(ctx, leg.name, leg.base, leg.target)
		if err != nil {
			return f, fmt.Errorf("fetching volume %s from node %s, %s: %w", id, from, leg.name, err)
		}
		f.Legs = append(f.Legs, l)
	}
	f.Compared, err = s.compare(ctx, id)
	return f, err
}

// compare opens the copy and compares its data. It closes the copy again, so that it can be deleted.
func (s Side) compare(ctx context.Context, id string) (int64, error) {
	s.Note("comparing what has arrived")
	v, err := s.open(ctx, id, ownership.Promise{Epoch: second, Primary: s.Identity.Node, Lineage: lineage.Lineage{{Epoch: first}, {Epoch: second, From: change}}})
	if err != nil {
		return 0, err
	}
	bytes, err := s.Data.Compare(ctx, v, whole.Seq, change.Seq)
	return bytes, errors.Join(err, s.Copies.Mark(ctx, id, provision.Mark{Closed: second}))
}

type fetcher struct {
	Side
	from   string
	dial   func(context.Context) (net.Conn, error)
	packer *wire.Packer
}

// fetch asks for a stream until it has arrived, as long as it makes sense to ask again.
func (f fetcher) fetch(ctx context.Context, name string, base, target lineage.Point) (Leg, error) {
	l := Leg{Name: name}
	began := f.Now()
	for {
		l.Tries++
		received, err := f.once(ctx, name, base, target)
		l.Raw, l.Wire, l.Took = l.Raw+received.Progress.Raw, l.Wire+received.Progress.Wire, f.Now().Sub(began)
		if err == nil || received.Committed {
			return l, nil
		}
		next := stream.After(err).Next
		if l.Tries == tries || next == stream.Decide || next == stream.Person {
			return l, err
		}
		f.Note(fmt.Sprintf("%s: %v; asking again", name, err))
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return l, context.Cause(ctx)
		}
	}
}

func (f fetcher) once(ctx context.Context, name string, base, target lineage.Point) (stream.Received, error) {
	conn, err := f.dial(ctx)
	if err != nil {
		return stream.Received{}, wire.Errorf(wire.Cut, "%v", err)
	}
	link, err := stream.Dial(ctx, conn, f.Identity, f.from, f.packer)
	if err != nil {
		return stream.Received{}, err
	}
	now, stop := f.progress(name)
	defer stop()
	id := Volume(f.from)
	sink := &copies.Sink{Copies: f.Copies, Node: f.Identity.Node, Volume: id, Prepare: f.make}
	ask := wire.Stream{Volume: id, From: f.from, Epoch: first, Base: base, Target: target, Format: f.Copies.Abilities().Format}
	return stream.Receive(ctx, link, ask, sink, stream.Options{Progress: func(p stream.Progress) { now.Store(&p) }})
}

// make makes the volume that a stream is for.
func (f fetcher) make(ctx context.Context, h provision.StreamHeader) error {
	_, err := f.Provisioner.Create(ctx, provision.CreateRequest{ID: h.Volume, Pool: f.Pool, Size: h.Size, Tree: f.Tree})
	return err
}

// progress tells once a second how far a stream is, until stop is called.
func (f fetcher) progress(name string) (now *atomic.Pointer[stream.Progress], stop func()) {
	now = &atomic.Pointer[stream.Progress]{}
	ended, gone := make(chan struct{}), make(chan struct{})
	began := f.Now()
	go func() {
		defer close(gone)
		tick := time.NewTicker(wait)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if p := now.Load(); p != nil {
					f.Note(name + ": " + describe(*p, f.Now().Sub(began)))
				}
			case <-ended:
				return
			}
		}
	}()
	return now, func() { close(ended); <-gone }
}

// describe says how far a stream is, how fast, and how long it will take.
func describe(p stream.Progress, since time.Duration) string {
	perSecond := float64(p.Raw) / max(since.Seconds(), 0.001)
	s := fmt.Sprintf("%s, %s/s", quantity.Rough(int64(p.Raw)), quantity.Rough(int64(perSecond))) //nolint:gosec // bytes of a stream
	if p.Size > p.Raw && perSecond > 0 {
		left := time.Duration(float64(p.Size-p.Raw) / perSecond * float64(time.Second)).Round(time.Second)
		s += fmt.Sprintf(", about %v left", max(left, time.Second))
	}
	return s
}
