package copies_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/certtest"
	"berth.dev/berth/internal/replicate/copies"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

const (
	volume = "pvc-1"
	unit   = 4 << 20
)

var (
	epoch   = lineage.Epoch{Number: 1, ID: "one"}
	promise = ownership.Promise{Epoch: epoch, Primary: "alpha", Boot: "boot-1", Lineage: lineage.Lineage{{Epoch: epoch}}}
	pool    = provision.PoolRef{Type: provision.LVM, Name: "vg"}
	none    lineage.Point
)

func point(seq uint64) lineage.Point { return lineage.Point{Epoch: epoch, Seq: seq} }

// node is a machine with a pool in memory.
type node struct {
	t     testing.TB
	disks *memory.Disks
	*memory.Provisioner
	copies   provision.Replicator
	identity cert.Identity
}

// world is two nodes of one cluster. Alpha has the volume, and beta a blank one.
type world struct {
	t           testing.TB
	alpha, beta *node
	stock       *copies.Stock
	sink        *copies.Sink
	// cut, if not 0, is the write on the link, of either end, at which the connection is lost.
	cut int
	// connect, if set, makes a connection between the two in place of net.Pipe. lose, if set, loses it in
	// place of closing both ends.
	connect func() (near, far net.Conn)
	lose    func()
}

func newWorld(t testing.TB) *world {
	t.Helper()
	a := certtest.New(t)
	w := &world{t: t, alpha: newNode(t, a, "alpha"), beta: newNode(t, a, "beta")}
	w.alpha.make(16)
	w.beta.make(16)
	w.alpha.mark(provision.Mark{Promise: promise, Opened: epoch})
	_, err := w.alpha.copies.Writable(t.Context(), volume)
	must(t, err)
	w.stock = &copies.Stock{Copies: w.alpha.copies, Now: time.Now, Replica: func(_ context.Context, of, to string) error {
		if of != volume || to != "beta" {
			return errors.New("it has no replica")
		}
		return nil
	}}
	w.sink = &copies.Sink{Copies: w.beta.copies, Node: "beta", Volume: volume}
	return w
}

func newNode(t testing.TB, a *certtest.Authority, name string) *node {
	disks := memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 200 * unit})
	p := memory.New(disks, nil)
	return &node{t: t, disks: disks, Provisioner: p, copies: memory.NewReplicator(p, time.Now), identity: a.Node(t, name)}
}

func (n *node) make(units int64) {
	n.t.Helper()
	_, err := n.Create(n.t.Context(), provision.CreateRequest{ID: volume, Pool: pool, Size: units * unit})
	must(n.t, err)
}

func (n *node) mark(m provision.Mark) {
	n.t.Helper()
	must(n.t, n.copies.Mark(n.t.Context(), volume, m))
}

// take writes a text and keeps the head as a point.
func (n *node) take(seq uint64, text string) {
	n.t.Helper()
	n.disks.Write(volume, text)
	must(n.t, n.copies.Snapshot(n.t.Context(), provision.PointRequest{Volume: volume, Point: point(seq)}))
}

func (n *node) state() provision.Replica {
	n.t.Helper()
	s, err := n.copies.State(n.t.Context(), volume)
	must(n.t, err)
	return s
}

// ends are what the two ends say of a stream.
type ends struct {
	sent              stream.Sent
	received          stream.Received
	failed, failedToo error
}

// fetch has beta ask alpha for a stream.
func (w *world) fetch(base, target lineage.Point) (o ends) {
	w.t.Helper()
	return w.ask(wire.Stream{Volume: volume, From: "alpha", Epoch: w.beta.state().Promise.Epoch, Base: base, Target: target, Format: w.beta.copies.Abilities().Format})
}

func (w *world) ask(ask wire.Stream) (o ends) {
	w.t.Helper()
	packer, err := wire.NewPacker(2)
	must(w.t, err)
	connect := w.connect
	if connect == nil {
		connect = net.Pipe
	}
	near, far := connect()
	l := &link{at: w.cut, lose: w.lose}
	var group sync.WaitGroup
	group.Go(func() {
		a, err := stream.Accept(w.t.Context(), l.end(near), w.alpha.identity, packer)
		if o.failed = err; err == nil {
			o.sent, o.failed = stream.Send(w.t.Context(), a, w.stock, stream.Options{})
		}
	})
	b, err := stream.Dial(w.t.Context(), l.end(far), w.beta.identity, "alpha", packer)
	if o.failedToo = err; err == nil {
		o.received, o.failedToo = stream.Receive(w.t.Context(), b, ask, w.sink, stream.Options{})
	}
	group.Wait()
	return o
}

// link loses the connection at one of its writes, counted over both ends.
type link struct {
	mu       sync.Mutex
	at, seen int
	ends     []net.Conn
	lose     func()
}

func (l *link) end(c net.Conn) net.Conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, c)
	return &cutting{Conn: c, link: l}
}

type cutting struct {
	net.Conn
	link *link
}

func (c *cutting) Write(b []byte) (int, error) {
	c.link.mu.Lock()
	c.link.seen++
	cut := c.link.seen == c.link.at
	if cut && c.link.lose != nil {
		c.link.lose()
	} else if cut {
		for _, e := range c.link.ends {
			_ = e.Close()
		}
	}
	c.link.mu.Unlock()
	return c.Conn.Write(b)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
