package stream

import (
	"context"
	"crypto/rand"
	"errors"

	"berth.dev/berth/internal/replicate/wire"
)

// Received is what became of a stream that came to this node.
type Received struct {
	// Offer is what the sender offered, zero if it never did.
	Offer    wire.Offer
	Progress Progress
	// Committed: the sink has the snapshot.
	Committed bool
}

// Receive asks the node at the other end of the link for a stream, gives it to the sink, and closes the
// link. Volume, From, Epoch, Base, Target and Format of ask say which stream; Receive sets ID and To. The
// error is a *wire.Error, and After says what follows it.
func Receive(ctx context.Context, l *Link, ask wire.Stream, sink Sink, options Options) (Received, error) {
	in := &incoming{options: options, sink: sink}
	err := within(ctx, l, func(ctx context.Context, s *session) error {
		in.session = s
		return in.run(ctx, ask)
	})
	return in.received, err
}

// ackEvery is after how many bytes the receiver says how far it is.
const ackEvery = 4 * wire.MaxData

// incoming is a stream that comes to this node.
type incoming struct {
	*session
	options  Options
	sink     Sink
	received Received

	frames, acked uint64
	sum           uint64
}

func (in *incoming) run(ctx context.Context, ask wire.Stream) error {
	if err := in.greet(false); err != nil {
		return err
	}
	ask.To = in.me
	_, _ = rand.Read(ask.ID[:]) // it never fails
	want, half, err := in.request(ctx, ask)
	if err != nil {
		return err
	}
	if err := in.say(want); err != nil {
		return err
	}
	offer, err := expect[wire.Offer](in.Link, make([]byte, wire.MaxMessage))
	if err == nil {
		err = Verify(want, half, in.peer, offer)
	}
	if half != nil && restless(err) {
		return errors.Join(err, failed(in.sink.Discard(ctx), "deleting the half stream"))
	}
	if err != nil {
		return err
	}
	in.received.Offer = offer
	in.received.Progress = Progress{Offset: offer.Offset, Size: offer.Size}
	intake, err := in.sink.Begin(ctx, Header{Offer: offer, Resume: want.Resume})
	if err != nil {
		return failed(because(ctx, err), "preparing the pool")
	}
	if err := because(ctx, in.take(ctx, intake)); err != nil {
		return errors.Join(err, failed(intake.Abort(After(err).Keep), "ending the half stream"))
	}
	in.received.Committed = true
	in.part(wire.Committed{Bytes: in.received.Progress.Raw, Sum: in.sum})
	return nil
}

// restless tells whether the sender has no rest for a half stream, and would say the same again. Refusals that follow
// from the record say nothing about the half: the sender may read an older one.
func restless(err error) bool {
	switch wire.ReasonOf(err) {
	case wire.NoSnapshot, wire.WrongBase, wire.WrongTarget, wire.WrongStream:
		return true
	}
	return err != nil && After(err).Next == StartOver
}

// request is what to ask for: the rest of a half stream, if it is one of this stream.
func (in *incoming) request(ctx context.Context, ask wire.Stream) (wire.Want, *Half, error) {
	half, ok, err := in.sink.Half(ctx)
	if err != nil {
		return wire.Want{}, nil, failed(err, "looking for a half stream")
	}
	if !ok {
		return wire.Want{Stream: ask}, nil, nil
	}
	if Continues(ask, half) != nil {
		return wire.Want{Stream: ask}, nil, failed(in.sink.Discard(ctx), "deleting the half stream")
	}
	return wire.Want{Stream: ask, Resume: half.Resume}, &half, nil
}

// take gives the stream to the intake. It holds each frame back until the next one has come. So the
// last one is passed on when the whole stream has proved sound, and no pool completes another.
func (in *incoming) take(ctx context.Context, intake Intake) error {
	if err := in.say(wire.Accept{ID: in.received.Offer.ID}); err != nil {
		return err
	}
	in.accepted = true
	buf, spare := make([]byte, wire.MaxData), make([]byte, wire.MaxData)
	var held []byte
	for {
		frame, err := in.hear(buf)
		if err != nil {
			return err
		}
		if frame.Kind != wire.KindData {
			return in.complete(ctx, intake, held, frame)
		}
		in.frames++
		in.sum = in.reader.Chain().Sum()
		in.received.Progress.Raw += uint64(len(frame.Payload))
		in.received.Progress.Wire += uint64(frame.Wire)
		if err := in.pass(intake, held); err != nil {
			return err
		}
		held, buf, spare = frame.Payload, spare, buf
	}
}

// pass gives bytes to the pool and tells the sender how far it is.
func (in *incoming) pass(intake Intake, b []byte) error {
	if err := in.write(intake, b); err != nil {
		return err
	}
	p := &in.received.Progress
	if p.Passed-in.acked < ackEvery {
		return nil
	}
	in.acked, p.Durable = p.Passed, intake.Durable()
	return in.say(wire.Ack{Passed: p.Passed, Durable: p.Durable})
}

func (in *incoming) write(intake Intake, b []byte) error {
	if len(b) > 0 {
		if _, err := intake.Write(b); err != nil {
			return failed(err, "writing to the pool")
		}
	}
	in.received.Progress.Passed += uint64(len(b))
	if in.options.Progress != nil {
		in.options.Progress(in.received.Progress)
	}
	return nil
}

// complete compares the stream with the sender's word about all of it, and commits it. From here on
// nothing is said to the sender before Commit: it may be gone, and the pool is to have all or not the end.
func (in *incoming) complete(ctx context.Context, intake Intake, held []byte, frame wire.Frame) error {
	m, err := wire.Decode(frame.Kind, frame.Payload)
	if err != nil {
		return err
	}
	done, ok := m.(wire.Done)
	if !ok {
		return unexpected(m, "Data or Done")
	}
	p := in.received.Progress
	if got := (wire.Done{Frames: in.frames, Bytes: p.Raw, Sum: in.sum}); done != got {
		return wire.Errorf(wire.WrongTotals, "%d frames of %d bytes came, and the sender has sent %d of %d", got.Frames, got.Bytes, done.Frames, done.Bytes)
	}
	if in.frames == 0 && in.received.Offer.Form != wire.Resumed {
		return wire.Errorf(wire.WrongTotals, "the stream is empty")
	}
	if err := in.write(intake, held); err != nil {
		return err
	}
	return failed(intake.Commit(ctx), "completing the snapshot")
}
