package conformance

import (
	"errors"
	"os"
	"slices"
	"strings"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

var none lineage.Point

func carriesInFull(p *pair) {
	p.a.made()
	p.b.made()
	p.a.primary(promiseOne)
	v, err := p.a.Format(p.t.Context(), provision.FormatRequest{ID: id(1), Filesystem: formatted(p.a.Filesystem)})
	must(p.t, "formatting", err)
	p.a.write("first")
	p.a.take(point(one, 1))
	h, stream := p.a.stream(none, point(one, 1))
	must(p.t, "receiving", p.b.receive(h, stream))
	p.restart()
	s := p.b.state()
	if !s.Exists || s.Promise.Epoch != one || len(s.Promise.Lineage) != 1 || s.Filesystem != v.Filesystem || s.Dirty || s.Receiving != nil {
		p.t.Errorf("the copy is %+v", s)
	}
	p.b.has(point(one, 1))
	p.b.primary(promiseTwoFrom(point(one, 1)))
	p.b.holds("first")
}

// formatted returns a filesystem that a volume can have.
func formatted(tree string) string {
	if tree != "" {
		return tree
	}
	return provision.Raw
}

// promiseTwoFrom is a promise of epoch two that begins at a point of epoch one.
func promiseTwoFrom(p lineage.Point) ownership.Promise {
	return promise(lineage.Branch{Epoch: one}, lineage.Branch{Epoch: two, From: p})
}

func carriesIncrement(p *pair) {
	p.copied()
	p.b.has(point(one, 1), point(one, 2))
	must(p.t, "dropping at the receiver", p.b.r.Drop(p.t.Context(), id(1), []lineage.Point{point(one, 1)}))
	p.a.write("third")
	p.a.take(point(one, 3))
	h, stream := p.a.stream(point(one, 2), point(one, 3))
	p.restart()
	must(p.t, "receiving another increment", p.b.receive(h, stream))
	p.b.has(point(one, 2), point(one, 3))
	p.b.primary(promiseTwoFrom(point(one, 3)))
	p.b.holds("third")
	_, _, err := p.a.sent(provision.SendRequest{Volume: id(1), Base: point(one, 3), Target: point(one, 2)})
	wants(p.t, "sending backwards", err, provision.ErrConflict)
	_, _, err = p.a.sent(provision.SendRequest{Volume: id(1), Base: point(one, 9), Target: point(one, 3)})
	wants(p.t, "sending from a base that is not held", err, provision.ErrNotFound)
}

func readOnlyUntilWritable(p *pair) {
	p.copied()
	if v, err := p.b.Get(p.t.Context(), id(1)); err != nil || v.Problem == "" {
		p.t.Errorf("a copy that only receives is %+v, %v", v, err)
	}
	pools, err := p.b.Report(p.t.Context())
	must(p.t, "reporting", err)
	for _, pool := range pools {
		for _, v := range pool.Volumes {
			if v.Problem == "" {
				p.t.Errorf("a copy that only receives is reported as %+v", v)
			}
		}
	}
	p.b.primary(promiseTwo)
	p.b.holds("second")
	p.b.closes(two)
	if v, err := p.b.Get(p.t.Context(), id(1)); err != nil || v.Problem == "" {
		p.t.Errorf("a copy that gave its epoch up is %+v, %v", v, err)
	}
}

func writableOnlyWhenOpened(p *pair) {
	p.copied()
	try := func(what string, m provision.Mark) {
		p.t.Helper()
		must(p.t, "marking", p.b.r.Mark(p.t.Context(), id(1), m))
		_, err := p.b.r.Writable(p.t.Context(), id(1))
		wants(p.t, what, err, provision.ErrConflict)
	}
	try("writing without an open epoch", provision.Mark{Promise: promiseTwo})
	try("writing in an epoch that is not promised", provision.Mark{Opened: three})
	try("writing in an epoch that was given up", provision.Mark{Promise: promiseThree, Closed: three})
	p.b.has(point(one, 1), point(one, 2))
}

func refusesWrongStreams(p *pair) {
	p.copied()
	p.a.write("third")
	p.a.take(point(one, 3))
	p.a.take(point(one, 4))
	h, stream := p.a.stream(point(one, 2), point(one, 3))
	rival := h
	rival.Promise = promise(lineage.Branch{Epoch: lineage.Epoch{Number: 1, ID: "rival"}})
	for what, wrong := range map[string]struct {
		change func(h *provision.StreamHeader)
		class  error
	}{
		"another volume":       {func(h *provision.StreamHeader) { h.Volume = id(2) }, provision.ErrNotFound},
		"no volume":            {func(h *provision.StreamHeader) { h.Volume = "../x" }, provision.ErrInvalid},
		"another format":       {func(h *provision.StreamHeader) { h.Format = "other" }, provision.ErrConflict},
		"a larger volume":      {func(h *provision.StreamHeader) { h.Size *= 2 }, provision.ErrConflict},
		"no size":              {func(h *provision.StreamHeader) { h.Size = 0 }, provision.ErrInvalid},
		"another base":         {func(h *provision.StreamHeader) { h.Base = point(one, 1) }, provision.ErrConflict},
		"a base beyond":        {func(h *provision.StreamHeader) { h.Base, h.Target = point(one, 3), point(one, 4) }, provision.ErrConflict},
		"a rival epoch":        {func(h *provision.StreamHeader) { h.Promise = rival.Promise }, provision.ErrConflict},
		"a foreign target":     {func(h *provision.StreamHeader) { h.Target = point(two, 3) }, provision.ErrConflict},
		"no target":            {func(h *provision.StreamHeader) { h.Target = none }, provision.ErrInvalid},
		"a headless promise":   {func(h *provision.StreamHeader) { h.Promise.Lineage = nil }, provision.ErrInvalid},
		"a strange snapshot":   {func(h *provision.StreamHeader) { h.Snapshots = []string{"-rf"} }, provision.ErrInvalid},
		"a strange filesystem": {func(h *provision.StreamHeader) { h.Filesystem = "vfat" }, provision.ErrInvalid},
		"a resumed stream":     {func(h *provision.StreamHeader) { h.Resume = "7" }, provision.ErrConflict},
	} {
		wrong.change(&h)
		wants(p.t, what, p.b.receive(h, stream), wrong.class)
		h, stream = p.a.stream(point(one, 2), point(one, 3))
	}
	if s := p.b.state(); s.Receiving != nil {
		p.t.Errorf("something refused was received: %+v", s.Receiving)
	}
	must(p.t, "promising a newer epoch", p.b.r.Mark(p.t.Context(), id(1), provision.Mark{Promise: promiseTwo}))
	wants(p.t, "a stream of an old epoch, to a point that the new one left out", p.b.receive(h, stream), provision.ErrConflict)
	p.b.has(point(one, 1), point(one, 2))
}

func refusesOverData(p *pair) {
	p.copied()
	h, stream := p.a.stream(none, point(one, 2))
	p.restart()
	must(p.t, "deleting", p.b.Delete(p.t.Context(), id(1)))
	p.remade()
	_, err := p.b.Format(p.t.Context(), provision.FormatRequest{ID: id(1), Filesystem: formatted(p.b.Filesystem)})
	must(p.t, "formatting", err)
	wants(p.t, "a stream to a volume that is no copy", p.b.receive(h, stream), provision.ErrConflict)
	must(p.t, "deleting", p.b.Delete(p.t.Context(), id(1)))
	p.remade()
	p.b.primary(promiseOne)
	wants(p.t, "a stream to a volume that is open", p.b.receive(h, stream), provision.ErrConflict)
	p.b.write("precious")
	p.b.closes(one)
	wants(p.t, "a stream over writes", p.b.receive(h, stream), provision.ErrConflict)
	p.b.take(point(one, 9))
	wants(p.t, "a stream over newer points", p.b.receive(h, stream), provision.ErrConflict)
	p.b.has(point(one, 9))
}

// remade makes the volume of node b again, once its room is free.
func (p *pair) remade() {
	p.t.Helper()
	for {
		err := p.b.make()
		if err == nil {
			return
		}
		if !errors.Is(err, provision.ErrUnavailable) {
			p.t.Fatal(err)
		}
		select {
		case <-p.b.Changed():
		case <-p.t.Context().Done():
			p.t.Fatal(err)
		}
	}
}

func refusesDamage(p *pair) {
	p.copied()
	p.a.write(p.long())
	p.a.take(point(one, 3))
	h, stream := p.a.stream(point(one, 2), point(one, 3))
	if !p.b.r.Abilities().Checksummed {
		return
	}
	for at := 0; at < len(stream); at += max(1, len(stream)/24) {
		damaged := slices.Clone(stream)
		damaged[at] ^= 0x40
		if err := p.b.receive(h, damaged); err == nil {
			p.t.Fatalf("a stream of %d bytes whose byte %d is damaged was taken", len(stream), at)
		}
		p.b.has(point(one, 1), point(one, 2))
		must(p.t, "aborting", p.b.r.Abort(p.t.Context(), id(1)))
	}
	wants(p.t, "a stream with something after it", p.b.receive(h, append(slices.Clone(stream), stream...)), provision.ErrInvalid)
	must(p.t, "the stream as it was sent", p.b.receive(h, stream))
}

func refusesReplay(p *pair) {
	p.copied()
	p.a.take(point(one, 3))
	h, stream := p.a.stream(point(one, 2), point(one, 3))
	must(p.t, "receiving", p.b.receive(h, stream))
	wants(p.t, "receiving again", p.b.receive(h, stream), provision.ErrConflict)
	p.b.has(point(one, 1), point(one, 2), point(one, 3))
	h, stream = p.a.stream(none, point(one, 2))
	wants(p.t, "an older point in full", p.b.receive(h, stream), provision.ErrConflict)
	p.b.has(point(one, 1), point(one, 2), point(one, 3))
}

func replacesWhole(p *pair) {
	p.copied()
	text := p.long()
	p.a.write(text)
	p.a.take(point(one, 3))
	h, stream := p.a.stream(none, point(one, 3))
	wants(p.t, "half a stream", p.b.receive(h, stream[:len(stream)/2]), provision.ErrInvalid)
	p.b.has(point(one, 1), point(one, 2))
	p.restart()
	p.b.has(point(one, 1), point(one, 2))
	must(p.t, "aborting", p.b.r.Abort(p.t.Context(), id(1)))
	must(p.t, "the whole stream", p.b.receive(h, stream))
	p.b.has(point(one, 3))
	p.b.primary(promiseTwoFrom(point(one, 3)))
	p.b.holds(text)
}

func rolesChange(p *pair) {
	p.copied()
	p.a.closes(one)
	p.b.primary(promiseTwo)
	p.b.holds("second")
	p.b.write("other")
	p.b.take(point(two, 3))
	h, stream := p.b.stream(point(one, 2), point(two, 3))
	must(p.t, "the way back", p.a.receive(h, stream))
	p.a.has(point(one, 1), point(one, 2), point(two, 3))
	p.b.closes(two)
	p.restart()
	p.a.primary(promiseThree)
	p.a.holds("other")
	p.a.write("again")
	p.a.take(point(three, 4))
	h, stream = p.a.stream(point(two, 3), point(three, 4))
	must(p.t, "there again", p.b.receive(h, stream))
	p.b.has(point(one, 1), point(one, 2), point(two, 3), point(three, 4))
	p.b.primary(promise(append(promiseThree.Lineage, lineage.Branch{Epoch: lineage.Epoch{Number: 4, ID: "four"}, From: point(three, 4)})...))
	p.b.holds("again")
}

func deletesCopies(p *pair) {
	p.copied()
	p.a.closes(one)
	for _, s := range []side{p.a, p.b} {
		must(p.t, "deleting", s.Delete(p.t.Context(), id(1)))
		_, err := s.r.State(p.t.Context(), id(1))
		wants(p.t, "asking for what was deleted", err, provision.ErrNotFound)
		s.Idle()
	}
	p.remade()
	if s := p.b.state(); s.Exists || len(s.Points) > 0 {
		p.t.Errorf("the volume of the same name is %+v", s)
	}
}

func stopsSending(p *pair) {
	p.copied()
	p.a.write(strings.Repeat("large", 1<<17))
	p.a.take(point(one, 3))
	p.a.take(point(one, 4))
	reader, writer, err := os.Pipe()
	must(p.t, "making a pipe", err)
	defer writer.Close()
	ended := make(chan error, 1)
	go func() {
		ended <- p.a.r.Send(p.t.Context(), provision.SendRequest{Volume: id(1), Base: point(one, 2), Target: point(one, 3)}, writer)
	}()
	_, err = reader.Read(make([]byte, 16))
	must(p.t, "reading", err)
	for _, at := range []lineage.Point{point(one, 2), point(one, 3)} {
		wants(p.t, "dropping what is sent", p.a.r.Drop(p.t.Context(), id(1), []lineage.Point{at}), provision.ErrInUse)
	}
	_ = reader.Close()
	if err := <-ended; err == nil {
		p.t.Error("a stream that nobody read was sent")
	}
	must(p.t, "dropping", p.a.r.Drop(p.t.Context(), id(1), []lineage.Point{point(one, 2), point(one, 3)}))
}
