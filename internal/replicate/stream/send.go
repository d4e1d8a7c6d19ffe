package stream

import (
	"context"
	"errors"
	"io"
	"time"

	"berth.dev/berth/internal/replicate/wire"
)

// Sent is what became of a stream that left this node.
type Sent struct {
	// Want is what the peer asked for, zero if it never did.
	Want wire.Want
	// Progress is how far the stream came.
	Progress Progress
	// Committed: the receiver has said that it has the snapshot.
	Committed bool
}

// Send answers the request of the node at the other end of the link, and closes the link. The error is
// a *wire.Error. Its reason is wire.Unconfirmed if the receiver may have the snapshot and has not said so.
func Send(ctx context.Context, l *Link, stock Stock, options Options) (Sent, error) {
	o := &outgoing{options: options, committed: make(chan wire.Committed, 1), acks: make(chan wire.Ack, 1)}
	err := within(ctx, l, func(ctx context.Context, s *session) error {
		o.session = s
		return o.run(ctx, stock)
	})
	return o.sent, err
}

// outgoing is a stream that leaves this node.
type outgoing struct {
	*session
	options Options
	sent    Sent
	choice  choice
	pacer   Pacer
	done    wire.Done

	// The listener's words to run. acks has the newest only.
	committed chan wire.Committed
	acks      chan wire.Ack
}

func (o *outgoing) run(ctx context.Context, stock Stock) error {
	if err := o.greet(true); err != nil {
		return err
	}
	want, err := expect[wire.Want](o.Link, make([]byte, wire.MaxMessage))
	if err != nil {
		return err
	}
	if err := verifyWant(o.me, o.peer, want); err != nil {
		return err
	}
	o.sent.Want = want
	if o.options.Pace != nil {
		o.pacer = o.options.Pace(want)
	}
	source, err := o.open(ctx, stock, want)
	if err != nil {
		return failed(because(ctx, err), "opening the snapshot")
	}
	err = because(ctx, o.serve(ctx, source))
	return errors.Join(err, failed(source.Close(o.sent.Committed), "closing the snapshot"))
}

// open asks the stock for the stream, which may wait. This end does not read from the peer meanwhile. It notices that
// the peer has gone when it cannot write Alive, so that the peer keeps no place and no connection for good.
func (o *outgoing) open(ctx context.Context, stock Stock, want wire.Want) (Source, error) {
	ctx, end := context.WithCancelCause(ctx)                                 // the source's, too: it ends with the session
	stop := context.AfterFunc(o.gone, func() { end(context.Cause(o.gone)) }) //nolint:contextcheck // it only ends ctx
	defer stop()
	source, err := stock.Open(ctx, want)
	return source, because(ctx, err)
}

func (o *outgoing) serve(ctx context.Context, source Source) error {
	want, offer := o.sent.Want, source.Header()
	offer.ID, offer.Volume, offer.From, offer.To = want.ID, want.Volume, want.From, want.To
	o.sent.Progress = Progress{Offset: offer.Offset, Size: offer.Size}
	if err := o.say(offer); err != nil {
		return err
	}
	accept, err := expect[wire.Accept](o.Link, make([]byte, wire.MaxMessage))
	if err != nil {
		return err
	}
	if accept.ID != want.ID {
		return wire.Errorf(wire.WrongStream, "node %s accepts another stream than it was offered", o.peer)
	}
	o.accepted = true
	o.heard = make(chan struct{})
	o.group.Go(o.listen)
	if err := o.pour(ctx, source); err != nil {
		return err
	}
	if err := o.say(o.done); err != nil {
		return unconfirmed(err)
	}
	return o.confirm(ctx)
}

// pour sends all of the source.
func (o *outgoing) pour(ctx context.Context, source io.Reader) error {
	buf := make([]byte, wire.HeaderLen+wire.MaxData)
	for {
		n, err := fill(source, buf[wire.HeaderLen:])
		if n > 0 {
			if err := o.frame(ctx, buf[:wire.HeaderLen+n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return failed(err, "reading the snapshot")
		}
	}
}

// fill reads until b is full. Unlike io.ReadFull it leaves io.ErrUnexpectedEOF to the source, whose word
// for a stream that was cut it may be.
func fill(source io.Reader, b []byte) (n int, err error) {
	for empty := 0; n < len(b) && err == nil; empty++ {
		if empty > 100 {
			return n, io.ErrNoProgress
		}
		var more int
		if more, err = source.Read(b[n:]); more > 0 {
			n, empty = n+more, 0
		}
	}
	return n, err
}

// frame sends what follows the room for the header in buf.
func (o *outgoing) frame(ctx context.Context, buf []byte) error {
	begin := time.Now()
	pack, _ := o.choice.next()
	p := o.writer.Prepare(buf, pack)
	prepared := time.Now()
	if o.pacer != nil {
		if err := o.pacer.Wait(ctx, p.Wire()); err != nil {
			return failed(err, "waiting for the limits of the link")
		}
	}
	sum, err := o.data(p)
	if err != nil {
		return err
	}
	o.choice = o.choice.after(spent{
		raw: p.Raw(), wire: p.Wire(), tried: pack, packing: prepared.Sub(begin), leaving: time.Since(prepared),
	})
	o.done = wire.Done{Frames: o.done.Frames + 1, Bytes: o.done.Bytes + uint64(p.Raw()), Sum: sum}
	o.sent.Progress.Raw = o.done.Bytes
	o.sent.Progress.Wire += uint64(p.Wire())
	o.report()
	return nil
}

// report tells the newest that the receiver has said.
func (o *outgoing) report() {
	select {
	case ack := <-o.acks:
		o.sent.Progress.Passed, o.sent.Progress.Durable = ack.Passed, ack.Durable
	default:
	}
	if o.options.Progress != nil {
		o.options.Progress(o.sent.Progress)
	}
}

// listen hears the receiver until it has committed or the link ends.
func (o *outgoing) listen() {
	defer close(o.heard)
	buf, passed := make([]byte, wire.MaxMessage), uint64(0)
	for {
		frame, err := o.hear(buf)
		if err != nil {
			o.fail(err)
			return
		}
		m, err := wire.Decode(frame.Kind, frame.Payload)
		if err != nil {
			o.fail(err)
			return
		}
		switch m := m.(type) {
		case wire.Ack:
			if m.Passed > passed { // the same word again is no movement
				passed = m.Passed
				o.below.move()
			}
			select {
			case <-o.acks:
			default:
			}
			o.acks <- m
		case wire.Committed:
			o.committed <- m
			return
		default:
			o.fail(unexpected(m, "Ack"))
			return
		}
	}
}

// confirm waits for the receiver's word that it has the snapshot.
func (o *outgoing) confirm(ctx context.Context) error {
	select {
	case c := <-o.committed:
		if c.Bytes != o.done.Bytes || c.Sum != o.done.Sum {
			return wire.Errorf(wire.WrongTotals, "node %s has committed another stream than it was sent", o.peer)
		}
		o.sent.Committed = true
		o.report()
		return nil
	case <-ctx.Done():
		return unconfirmed(because(ctx, ctx.Err()))
	}
}

// unconfirmed is the Error of a link that was lost after Done. The receiver's own refusal stays what it is.
func unconfirmed(err error) error {
	if f, ok := errors.AsType[*wire.Error](err); ok && f.Remote {
		return err
	}
	return &wire.Error{Reason: wire.Unconfirmed, Message: "all was sent, and the receiver has not confirmed it", Cause: err}
}
