package copies

import (
	"context"
	"errors"
	"os"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// Sink receives points into one volume's copy.
type Sink struct {
	Copies provision.Replicator
	// Node is this one, and Volume the one whose copy receives.
	Node, Volume string
	// Limits of the pool's use.
	Limits provision.Limits
	// Prepare, if not nil, is called before a stream is received, and may make the volume. An error
	// refuses the stream.
	Prepare func(ctx context.Context, h provision.StreamHeader) error
}

var _ stream.Sink = (*Sink)(nil)

// Half implements stream.Sink. What cannot be resumed is no half stream: the next one replaces it.
func (s *Sink) Half(ctx context.Context) (h stream.Half, ok bool, err error) {
	state, err := s.Copies.State(ctx, s.Volume)
	if errors.Is(err, provision.ErrNotFound) {
		return h, false, nil
	}
	if err != nil {
		return h, false, wired(err)
	}
	r := state.Receiving
	if r == nil || r.Token == "" {
		return h, false, nil
	}
	h.Stream = wire.Stream{Volume: s.Volume, From: r.From, To: s.Node, Epoch: r.Epoch, Base: r.Base, Target: r.Target, Format: s.Copies.Abilities().Format}
	h.Resume.Token = []byte(r.Token)
	return h, true, nil
}

// Discard implements stream.Sink.
func (s *Sink) Discard(ctx context.Context) error { return wired(s.Copies.Abort(ctx, s.Volume)) }

// Begin implements stream.Sink. The pool may refuse the stream at the first byte.
func (s *Sink) Begin(ctx context.Context, begin stream.Header) (stream.Intake, error) {
	h, err := decode(begin.Offer)
	if err != nil {
		return nil, err
	}
	if h.Volume != s.Volume {
		return nil, wire.Errorf(wire.WrongVolume, "the stream is of volume %s, not %s", h.Volume, s.Volume)
	}
	h.Resume, h.Limits = string(begin.Resume.Token), s.Limits
	if s.Prepare != nil {
		if err := s.Prepare(ctx, h); err != nil {
			return nil, wired(err)
		}
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, wired(err)
	}
	after := context.WithoutCancel(ctx)
	i := &intake{pipe: in, done: make(chan struct{}), discard: func() error { return s.Copies.Abort(after, s.Volume) }}
	ctx, i.cancel = context.WithCancel(ctx)
	i.unblock = context.AfterFunc(ctx, func() { _ = in.SetWriteDeadline(time.Unix(1, 0)) })
	go func() { // ends when the pipe is closed or ctx ends
		defer close(i.done)
		i.failure = s.Copies.Receive(ctx, h, out)
		_ = out.Close()
	}()
	return i, nil
}

// intake is one stream into a pool.
type intake struct {
	pipe    *os.File
	cancel  context.CancelFunc
	unblock func() bool
	// done is closed when the pool has ended its work, with failure.
	done    chan struct{}
	failure error
	// discard removes what the pool keeps of the stream, also after its caller gave up.
	discard func() error
}

// Write implements stream.Intake. A pool that refuses the stream closes the pipe, and says why.
func (i *intake) Write(b []byte) (int, error) {
	n, err := i.pipe.Write(b)
	if err == nil {
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, wire.Errorf(wire.Stopped, "the stream was given up")
	}
	<-i.done
	if i.failure == nil {
		return n, wire.Errorf(wire.WrongSum, "the pool takes the stream for whole before its end")
	}
	return n, wired(i.failure)
}

// Durable implements stream.Intake: only the pool knows.
func (i *intake) Durable() uint64 { return 0 }

// Commit implements stream.Intake: the pool completes the point when the pipe ends.
func (i *intake) Commit(ctx context.Context) error {
	i.unblock()
	if err := i.pipe.Close(); err != nil {
		return wired(err)
	}
	select {
	case <-i.done:
		i.cancel()
		return wired(i.failure)
	case <-ctx.Done():
		return wire.Errorf(wire.Stopped, "the pool was completing the point: %v", context.Cause(ctx))
	}
}

// Abort implements stream.Intake. The pool hears that the stream was given up before the pipe ends.
func (i *intake) Abort(keep bool) error {
	i.cancel()
	<-i.done
	_ = i.pipe.Close() // closed already if Commit failed
	if keep {
		return nil
	}
	err := i.discard()
	if errors.Is(err, provision.ErrNotFound) {
		return nil
	}
	return wired(err)
}
