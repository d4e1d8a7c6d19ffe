package stream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/certtest"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

var (
	epoch1 = lineage.Epoch{Number: 1, ID: "one"}
	epoch2 = lineage.Epoch{Number: 2, ID: "two"}
	base   = lineage.Point{Epoch: epoch1, Seq: 4}
	target = lineage.Point{Epoch: epoch2, Seq: 7}
	// ask is an increment that beta asks alpha for.
	ask = wire.Stream{Volume: "pvc-1", From: "alpha", Epoch: epoch2, Base: base, Target: target, Format: "memory"}
)

// newPacker returns a Packer of the bubble that the test runs in.
func newPacker(t testing.TB) *wire.Packer {
	t.Helper()
	p, err := wire.NewPacker(2)
	check(t, err)
	return p
}

// pool is a Sink and a Stock in memory, of one volume.
type pool struct {
	mu sync.Mutex
	// snapshots are what is visible.
	snapshots map[lineage.Point][]byte
	half      *stream.Half
	bytes     []byte
	begun     int
	discarded int
	aborted   []bool

	// What the test makes it do.
	replicas                                          []string
	epoch                                             lineage.Epoch
	openErr, halfErr, discardErr, beginErr, commitErr error

	write  func(total int) error
	commit func()
	source func(ctx context.Context, rest []byte) io.Reader
	closed []bool
	// drop: what arrives is thrown away.
	drop bool
}

func newPool(points map[lineage.Point][]byte) *pool {
	return &pool{snapshots: maps.Clone(points), replicas: []string{"beta"}, epoch: epoch2}
}

func (p *pool) Open(ctx context.Context, want wire.Want) (stream.Source, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	content, ok := p.snapshots[want.Target]
	switch {
	case p.openErr != nil:
		return nil, p.openErr
	case want.Volume != ask.Volume || !slices.Contains(p.replicas, want.To):
		return nil, wire.Errorf(wire.NotReplica, "node %s has no replica of volume %s", want.To, want.Volume)
	case !ok:
		return nil, wire.Errorf(wire.NoSnapshot, "there is no snapshot %s", want.Target)
	case want.Resume.Offset > uint64(len(content)):
		return nil, wire.Errorf(wire.CannotResume, "the stream has %d bytes", len(content))
	}
	offer := wire.Offer{Stream: wire.Stream{Epoch: p.epoch, Base: want.Base, Target: want.Target, Format: "memory"},
		Form: wire.Incremental, Size: uint64(len(content)), Offset: want.Resume.Offset, Promise: []byte("promise")}
	if want.Base.IsZero() {
		offer.Form = wire.Full
	}
	if !want.Resume.IsZero() {
		offer.Form = wire.Resumed
	}
	rest := content[want.Resume.Offset:]
	if p.source == nil {
		return &source{Reader: bytes.NewReader(rest), pool: p, header: offer}, nil
	}
	p.mu.Unlock()
	defer p.mu.Lock()
	return &source{Reader: p.source(ctx, rest), pool: p, header: offer}, nil
}

type source struct {
	io.Reader
	pool   *pool
	header wire.Offer
}

func (s *source) Header() wire.Offer { return s.header }

func (s *source) Close(committed bool) error {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	s.pool.closed = append(s.pool.closed, committed)
	return nil
}

func (p *pool) Half(context.Context) (stream.Half, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.half == nil || p.halfErr != nil {
		return stream.Half{}, false, p.halfErr
	}
	h := *p.half
	h.Resume.Offset = uint64(len(p.bytes))
	return h, true, nil
}

func (p *pool) Discard(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.half, p.bytes = nil, nil
	p.discarded++
	return p.discardErr
}

func (p *pool) Begin(_ context.Context, h stream.Header) (stream.Intake, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.beginErr != nil {
		return nil, p.beginErr
	}
	p.begun++
	if h.Resume.IsZero() {
		p.bytes = nil
	}
	p.half = &stream.Half{Stream: h.Offer.Stream}
	return &intake{pool: p, target: h.Offer.Target}, nil
}

type intake struct {
	pool   *pool
	target lineage.Point
}

func (i *intake) Write(b []byte) (int, error) {
	if i.pool.drop {
		return len(b), nil
	}
	i.pool.mu.Lock()
	i.pool.bytes = append(i.pool.bytes, b...)
	total := len(i.pool.bytes)
	i.pool.mu.Unlock()
	if i.pool.write != nil {
		if err := i.pool.write(total); err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

func (i *intake) Durable() uint64 {
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	return uint64(len(i.pool.bytes))
}

func (i *intake) Commit(context.Context) error {
	if i.pool.commit != nil {
		i.pool.commit()
	}
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	if i.pool.commitErr != nil {
		return i.pool.commitErr
	}
	if i.pool.snapshots == nil {
		i.pool.snapshots = map[lineage.Point][]byte{}
	}
	i.pool.snapshots[i.target] = i.pool.bytes
	i.pool.half, i.pool.bytes = nil, nil
	return nil
}

func (i *intake) Abort(keep bool) error {
	i.pool.mu.Lock()
	defer i.pool.mu.Unlock()
	i.pool.aborted = append(i.pool.aborted, keep)
	if !keep || len(i.pool.bytes) == 0 {
		i.pool.half, i.pool.bytes = nil, nil
	}
	return nil
}

// outcome is what both ends say of one stream.
type outcome struct {
	sent     stream.Sent
	sendErr  error
	received stream.Received
	recvErr  error
}

// ends are two nodes and the connection between them.
type ends struct {
	authority   *certtest.Authority
	packer      *wire.Packer
	alpha, beta cert.Identity
	from, to    *pool
	// near is the sender's end of the connection, far the receiver's.
	near, far net.Conn
	ask       wire.Stream
	sending   stream.Options
	receiving stream.Options
}

// run plays one stream and waits for both ends.
func (e ends) run(ctx context.Context) (o outcome) {
	var group sync.WaitGroup
	group.Go(func() {
		l, err := stream.Accept(ctx, e.near, e.alpha, e.packer)
		if o.sendErr = err; err == nil {
			o.sent, o.sendErr = stream.Send(ctx, l, e.from, e.sending)
		}
	})
	l, err := stream.Dial(ctx, e.far, e.beta, e.ask.From, e.packer)
	if o.recvErr = err; err == nil {
		o.received, o.recvErr = stream.Receive(ctx, l, e.ask, e.to, e.receiving)
	}
	group.Wait()
	return o
}

// newEnds are two nodes of one authority with a pipe between them. Alpha has content as target.
func newEnds(t testing.TB, content []byte) ends {
	t.Helper()
	a := certtest.New(t)
	return ends{authority: a, packer: newPacker(t), alpha: a.Node(t, "alpha"), beta: a.Node(t, "beta")}.again(content)
}

// again returns the same nodes with another connection and pools as at the beginning.
func (e ends) again(content []byte) ends {
	e.near, e.far = net.Pipe()
	e.ask = ask
	e.from = newPool(map[lineage.Point][]byte{base: []byte("base"), target: content})
	e.to = newPool(map[lineage.Point][]byte{base: []byte("base")})
	return e
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

var errPool = errors.New("the pool failed")
