package copies

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// Stock sends the points of a node's copies.
type Stock struct {
	Copies provision.Replicator
	// Replica returns nil if a node has a replica of a volume, by the record.
	Replica func(ctx context.Context, volume, node string) error
	// Now is the clock by which holds end.
	Now func() time.Time
	// Estimate, if not nil, returns about how many bytes a stream will have, for people; 0 if unknown.
	Estimate func(q provision.SendRequest) uint64
}

var _ stream.Stock = (*Stock)(nil)

// Open implements stream.Stock.
func (s *Stock) Open(ctx context.Context, want wire.Want) (stream.Source, error) {
	if err := s.Replica(ctx, want.Volume, want.To); err != nil {
		return nil, wire.Errorf(wire.NotReplica, "node %s gets nothing of volume %.80q: %v", want.To, want.Volume, err)
	}
	able := s.Copies.Abilities()
	switch {
	case want.Format != able.Format:
		return nil, wire.Errorf(wire.WrongFormat, "node %s reads streams of format %s, and this one sends %s", want.To, want.Format, able.Format)
	case !want.Resume.IsZero() && (!able.Resumable || want.Resume.Offset > 0):
		return nil, wire.Errorf(wire.CannotResume, "streams of format %s do not go on from byte %d", able.Format, want.Resume.Offset)
	}
	q := provision.SendRequest{Volume: want.Volume, Base: want.Base, Target: want.Target, Resume: string(want.Resume.Token)}
	if err := s.hold(ctx, want, whileSent); err != nil {
		return nil, err
	}
	after := context.WithoutCancel(ctx)
	offer, err := s.offer(ctx, q)
	if err != nil {
		return nil, errors.Join(wired(err), s.hold(after, want, ownership.HoldFor))
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(wired(err), s.hold(after, want, ownership.HoldFor))
	}
	o := &source{offer: offer, pipe: out, done: make(chan struct{}), resumable: able.Resumable, hold: func() error { return s.hold(after, want, ownership.HoldFor) }}
	o.unblock = context.AfterFunc(ctx, func() { _ = out.SetReadDeadline(time.Unix(1, 0)) })
	go func() { // ends when the pipe is closed, at the latest
		defer close(o.done)
		o.failure = s.Copies.Send(ctx, q, in)
		_ = in.Close()
	}()
	return o, nil
}

// whileSent is how long the target of a stream under way is held: less than a pool allows, whose clock may be another.
const whileSent = provision.MaxHold - time.Hour

// hold keeps the target of a stream: the receiver and this node will have it in common, and perhaps no
// later point. While the stream is under way the hold ends late, because this node may be restarted meanwhile, and
// knows of the stream by the hold alone. Close brings the end near, unless the receiver is to ask for the rest.
func (s *Stock) hold(ctx context.Context, want wire.Want, last time.Duration) error {
	err := s.Copies.Hold(ctx, want.Volume, ownership.Hold{For: want.To, Point: want.Target, Until: s.Now().Add(last)})
	if errors.Is(err, provision.ErrNoSpace) { // there are as many holds as there may be, until some end
		return wire.Errorf(wire.Busy, "%v", err)
	}
	return wired(err)
}

func (s *Stock) offer(ctx context.Context, q provision.SendRequest) (o wire.Offer, err error) {
	state, err := s.Copies.State(ctx, q.Volume)
	if err != nil {
		return o, err
	}
	h, err := state.Header(s.Copies.Abilities(), q)
	if err != nil {
		return o, err
	}
	o = wire.Offer{Stream: wire.Stream{Epoch: h.Promise.Epoch, Base: q.Base, Target: q.Target, Format: h.Format}, Form: wire.Incremental}
	switch {
	case q.Resume != "":
		o.Form = wire.Resumed
	case q.Base.IsZero():
		o.Form = wire.Full
	}
	if s.Estimate != nil {
		o.Size = s.Estimate(q)
	}
	o.Promise, err = encode(h)
	return o, err
}

// source is one stream out of a pool.
type source struct {
	offer   wire.Offer
	pipe    *os.File
	unblock func() bool
	// done is closed when the pool has ended its work, with failure.
	done    chan struct{}
	failure error
	// hold keeps the target for a while, also after its caller gave up.
	hold func() error
	// resumable: a receiver that got a part keeps it, and asks for the rest.
	resumable bool
}

// Header implements stream.Source.
func (s *source) Header() wire.Offer { return s.offer }

// Read implements stream.Source. A pipe ends where the pool failed, too: only the pool's word makes an end.
func (s *source) Read(b []byte) (int, error) {
	n, err := s.pipe.Read(b)
	if n > 0 || err == nil {
		return n, nil
	}
	if !errors.Is(err, io.EOF) {
		return 0, wired(fmt.Errorf("reading the stream: %w", err))
	}
	<-s.done
	switch {
	case s.failure == nil:
		return 0, io.EOF
	case s.offer.Form == wire.Resumed && (errors.Is(s.failure, provision.ErrInvalid) || errors.Is(s.failure, provision.ErrConflict)):
		return 0, wire.Errorf(wire.CannotResume, "%v", s.failure)
	}
	return 0, wired(s.failure)
}

// Close implements stream.Source. The target is held for a while: the receiver may have it, whether it said so or
// not. If it did not, and may ask for the rest, the target stays held as while it was sent: a receiver that restarts for
// a quarter of an hour is to go on with its terabyte.
func (s *source) Close(committed bool) error {
	s.unblock()
	err := s.pipe.Close()
	<-s.done
	if !committed && s.resumable {
		return err
	}
	return errors.Join(err, s.hold())
}
