package stream

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"berth.dev/berth/internal/replicate/wire"
)

// session is one end of a stream while it runs.
type session struct {
	*Link
	// fail ends the session's context with a cause.
	fail context.CancelCauseFunc
	// gone ends, with a cause, when the peer cannot be told any more that this end is alive.
	gone context.Context //nolint:containedctx // of this session
	// group has the goroutines beside run. They end when the link is closed.
	group sync.WaitGroup
	// heard is closed when the goroutine that listens ends, nil if run itself listens.
	heard chan struct{}
	// accepted: the receiver has said Accept, so a fault is an Abort and no Refuse.
	accepted bool
}

// within runs one end of a stream and closes the link. The context of run ends when the caller's does,
// or by fail. When run fails, the peer is told why. The error is a *wire.Error.
func within(ctx context.Context, l *Link, run func(context.Context, *session) error) error {
	inner, fail := context.WithCancelCause(ctx)
	s := &session{Link: l, fail: fail}
	var lonely context.CancelCauseFunc
	s.gone, lonely = context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(inner, func() {
		if ctx.Err() == nil {
			// The peer still reads, or will be gone: let the last words through.
			time.AfterFunc(parting, l.Close)
			return
		}
		l.Close()
	})
	s.group.Go(func() { lonely(s.keepAlive(inner)) })

	err := because(inner, run(inner, s))
	stop()
	if f, ok := errors.AsType[*wire.Error](err); ok && !f.Remote {
		s.tell(f)
	}
	l.Close()
	fail(nil)
	s.group.Wait()
	return err
}

// tell ends the conversation with a fault of this end. Its cause stays here.
func (s *session) tell(f *wire.Error) {
	if s.accepted {
		s.part(wire.Abort{Reason: f.Reason, Message: f.Message})
		return
	}
	s.part(wire.Refuse{Reason: f.Reason, Message: f.Message})
}

// part says the last words and closes the connection, when the peer has heard them or has had time to. A
// connection that is closed while bytes of the peer are unread loses what was written last.
func (s *session) part(last wire.Message) {
	defer s.Close()
	limit := time.AfterFunc(parting, s.Close)
	defer limit.Stop()
	if s.say(last) != nil || s.finish() != nil {
		return
	}
	if s.heard != nil {
		<-s.heard
	}
	_, _ = io.Copy(io.Discard, s.conn)
}

// because returns err, or the reason for which ctx has ended if err may only follow from it. Damage and a
// refusal never do: what came before them is not kept because the caller stopped the stream meanwhile.
func because(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if err == nil || cause == nil {
		return err
	}
	switch wire.ReasonOf(err) {
	case "", wire.Cut, wire.Silent, wire.Failed:
	default:
		return err
	}
	if wire.ReasonOf(cause) != "" {
		return cause
	}
	return &wire.Error{Reason: wire.Stopped, Message: "this node has given the stream up", Cause: cause}
}

// failed is the Error of a pool's error.
func failed(err error, doing string) error {
	if err == nil || wire.ReasonOf(err) != "" {
		return err
	}
	return &wire.Error{Reason: wire.Failed, Message: doing + " failed", Cause: err}
}
