package conformance

import (
	"context"
	"os"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
)

func survivesCuts(p *pair) {
	p.copied()
	text := p.long()
	p.a.write(text)
	p.a.take(point(one, 3))
	h, stream := p.a.stream(point(one, 2), point(one, 3))
	resumable := p.b.r.Abilities().Resumable
	for _, cut := range []int{0, 1, len(stream) / 3, len(stream) / 2, len(stream) - 1} {
		wants(p.t, "a stream that was cut off", p.b.receive(h, stream[:cut]), provision.ErrInvalid)
		p.b.has(point(one, 1), point(one, 2))
		p.restart()
		if s := p.b.state(); s.Promise.Epoch != one || resumable && (s.Receiving == nil || s.Receiving.Target != h.Target) {
			p.t.Errorf("after a cut at byte %d the copy is %+v", cut, s)
		}
	}
	if resumable {
		q := provision.SendRequest{Volume: id(1), Base: h.Base, Target: h.Target, Resume: p.b.state().Receiving.Token}
		var err error
		was := len(stream)
		h, stream, err = p.a.sent(q)
		must(p.t, "sending the rest", err)
		if len(stream) >= was {
			p.t.Errorf("the rest has %d bytes of %d", len(stream), was)
		}
		other := h
		other.Resume += "1"
		wants(p.t, "resuming elsewhere", p.b.receive(other, stream), provision.ErrConflict)
	}
	must(p.t, "receiving", p.b.receive(h, stream))
	p.b.primary(promiseTwoFrom(point(one, 3)))
	p.b.holds(text)
}

func outlivesItsEpoch(p *pair) {
	p.copied()
	text := p.long()
	p.a.write(text)
	p.a.take(point(one, 3))
	h, stream := p.a.stream(point(one, 2), point(one, 3))
	wants(p.t, "a stream that was cut off", p.b.receive(h, stream[:len(stream)/2]), provision.ErrInvalid)
	must(p.t, "promising an epoch that begins at its target", p.b.r.Mark(p.t.Context(), id(1), provision.Mark{Promise: promiseTwoFrom(h.Target)}))
	if p.b.r.Abilities().Resumable {
		var err error
		h, stream, err = p.a.sent(provision.SendRequest{Volume: id(1), Base: h.Base, Target: h.Target, Resume: p.b.state().Receiving.Token})
		must(p.t, "sending the rest", err)
	}
	must(p.t, "receiving from a sender of the epoch before", p.b.receive(h, stream))
	if s := p.b.state(); s.Promise.Epoch != two {
		p.t.Errorf("the promise became that of epoch %v", s.Promise.Epoch)
	}
	p.b.primary(promiseTwoFrom(h.Target))
	p.b.holds(text)
}

func aborts(p *pair) {
	p.copied()
	p.a.write(p.long())
	p.a.take(point(one, 3))
	h, stream := p.a.stream(point(one, 2), point(one, 3))
	wants(p.t, "a stream that was cut off", p.b.receive(h, stream[:len(stream)-1]), provision.ErrInvalid)
	must(p.t, "aborting", p.b.r.Abort(p.t.Context(), id(1)))
	must(p.t, "aborting again", p.b.r.Abort(p.t.Context(), id(1)))
	if s := p.b.state(); s.Receiving != nil {
		p.t.Errorf("there is %+v", s.Receiving)
	}
	p.b.has(point(one, 1), point(one, 2))
	must(p.t, "receiving", p.b.receive(h, stream))
}

func promisesOvertake(p *pair) {
	p.copied()
	p.a.write("third")
	p.a.take(point(one, 3))
	h, stream := p.a.stream(point(one, 2), point(one, 3))
	reader, writer, err := os.Pipe()
	must(p.t, "making a pipe", err)
	defer reader.Close()
	ended := make(chan error, 1)
	go func() { ended <- p.b.r.Receive(context.WithoutCancel(p.t.Context()), h, reader) }()
	_, err = writer.Write(stream)
	must(p.t, "writing", err)
	for p.b.state().Receiving == nil {
		select {
		case err := <-ended:
			p.t.Fatalf("the stream ended before its end: %v", err)
		default:
		}
	}
	wants(p.t, "aborting what is under way", p.b.r.Abort(p.t.Context(), id(1)), provision.ErrInUse)
	wants(p.t, "a second stream", p.b.receive(h, stream), provision.ErrInUse)
	wants(p.t, "dropping its base", p.b.r.Drop(p.t.Context(), id(1), []lineage.Point{point(one, 2)}), provision.ErrInUse)
	must(p.t, "promising a newer epoch", p.b.r.Mark(p.t.Context(), id(1), provision.Mark{Promise: promiseTwo}))
	_ = writer.Close()
	wants(p.t, "the end of the stream", <-ended, provision.ErrConflict)
	p.b.has(point(one, 1), point(one, 2))
	if s := p.b.state(); s.Promise.Epoch != two {
		p.t.Errorf("the promise is %v", s.Promise.Epoch)
	}
}

func givesUpStreams(p *pair) {
	p.copied()
	p.a.take(point(one, 3))
	h, stream := p.a.stream(point(one, 2), point(one, 3))
	reader, writer, err := os.Pipe()
	must(p.t, "making a pipe", err)
	defer reader.Close()
	defer writer.Close()
	ctx, cancel := context.WithCancel(p.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.b.r.Receive(ctx, h, reader) }()
	_, err = writer.Write(stream[:len(stream)/2])
	must(p.t, "writing", err)
	cancel()
	wants(p.t, "receiving", <-ended, context.Canceled)
	p.restart()
	must(p.t, "aborting", p.b.r.Abort(p.t.Context(), id(1)))
	must(p.t, "receiving again", p.b.receive(h, stream))
}
