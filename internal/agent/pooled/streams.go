package pooled

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/go-logr/logr"

	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/copies"
	"berth.dev/berth/internal/replicate/limit"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// places are how many streams run at a time. Sending burdens the node's pods by reads alone.
var places = limit.Places{Send: 4, Receive: 2, Peer: 2}

const (
	// packing is how many frames are packed at once.
	packing = 2
	// connections is how many streams one other node may ask for at a time; more wait in its own queue.
	connections = 16
)

// Streams move copies between this node and others.
type Streams struct {
	identity cert.Identity
	packer   *wire.Packer
	pace     func(wire.Want) stream.Pacer
	queue    *limit.Queue
	lines    lines
	dial     func(ctx context.Context, node string) (net.Conn, error)
	log      logr.Logger
}

// NewStreams returns Streams of a node. pace, if not nil, returns what holds back a stream that leaves the node. dial
// opens a connection to a node. A wrong address costs a stream and nothing else: the certificate proves which node it is.
func NewStreams(identity cert.Identity, pace func(wire.Want) stream.Pacer, dial func(ctx context.Context, node string) (net.Conn, error), log logr.Logger) (*Streams, error) {
	packer, err := wire.NewPacker(packing)
	if err != nil {
		return nil, err
	}
	identity.Protocol = cert.Stream
	return &Streams{identity: identity, packer: packer, pace: pace, queue: limit.NewQueue(places), lines: lines{standing: map[string]int{}}, dial: dial, log: log}, nil
}

// Owners returns the nodes that write to a volume, or are about to, none if that is not known. It does not wait.
type Owners func(ctx context.Context, volume string) []string

// Serve sends what is in a stock to the nodes that ask, until ctx ends or the listener fails. It closes the
// listener. The stock says which node gets what. A node that owns the volume gets it first: a pod waits for it there.
func (s *Streams) Serve(ctx context.Context, listener net.Listener, stock stream.Stock, owners Owners) error {
	server := &stream.Server{
		Identity: s.identity, Packer: s.packer, Stock: queued{stock, s.queue, owners}, Streams: connections, Options: stream.Options{Pace: s.pace},
		Ended: func(peer string, sent stream.Sent, err error) {
			if err != nil && ctx.Err() == nil {
				s.log.V(1).Info("a stream ended early", "node", peer, "volume", sent.Want.Volume, "reason", err.Error())
			}
		},
	}
	if err := server.Serve(ctx, listener); ctx.Err() == nil {
		return err
	}
	return nil
}

// fetch brings a point of a copy from another node.
func (s *Streams) fetch(ctx context.Context, r provision.Replicator, f owner.Fetch, limits provision.Limits) error {
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	turn := &turn{queue: s.queue, lines: &s.lines, giveUp: giveUp, request: limit.Request{
		Volume: f.Volume, Peer: f.From, Direction: limit.Receive, Class: class(f.Base, f.Awaited),
	}}
	if err := turn.enter(ctx); err != nil {
		return err
	}
	defer turn.end()
	defer time.AfterFunc(answers, turn.wait).Stop()
	conn, err := s.dial(ctx, f.From)
	if err != nil {
		return &wire.Error{Reason: wire.Cut, Message: "node " + f.From + " cannot be reached", Cause: err}
	}
	link, err := stream.Dial(ctx, conn, s.identity, f.From, s.packer)
	if err != nil {
		return err
	}
	ask := wire.Stream{Volume: f.Volume, From: f.From, Epoch: f.Epoch, Base: f.Base, Target: f.To, Format: r.Abilities().Format}
	sink := taking{&copies.Sink{Copies: r, Node: s.identity.Node, Volume: f.Volume, Limits: limits}, turn}
	received, err := stream.Receive(ctx, link, ask, sink, stream.Options{Progress: func(stream.Progress) { turn.moves() }})
	if received.Committed {
		return nil // what the sender was told does not matter any more
	}
	return err
}

// class of a stream: a new copy is worth more than one that follows, and a pod that waits more than both.
func class(base lineage.Point, awaited bool) limit.Class {
	switch {
	case awaited:
		return limit.Rescue
	case base.IsZero():
		return limit.Build
	}
	return limit.Follow
}

// queued is a stock whose streams wait for a place before anything of the volume is touched.
type queued struct {
	stream.Stock
	queue  *limit.Queue
	owners Owners
}

// Open implements stream.Stock.
func (q queued) Open(ctx context.Context, want wire.Want) (stream.Source, error) {
	awaited := slices.Contains(q.owners(ctx, want.Volume), want.To)
	leave, err := q.queue.Enter(ctx, limit.Request{Volume: want.Volume, Peer: want.To, Direction: limit.Send, Class: class(want.Base, awaited)})
	if err != nil {
		return nil, wire.Errorf(wire.Busy, "the stream has waited for a place in vain: %v", err)
	}
	watch := time.AfterFunc(hung, leave)
	source, err := q.Stock.Open(ctx, want)
	if err != nil {
		watch.Stop()
		leave()
		return nil, err
	}
	return placed{source, leave, watch}, nil
}

// placed is a source that gives its place back at its end, or when it has not moved for long.
type placed struct {
	stream.Source
	leave func()
	watch *time.Timer
}

// Read implements stream.Source.
func (p placed) Read(b []byte) (int, error) {
	n, err := p.Source.Read(b)
	if n > 0 {
		p.watch.Reset(hung)
	}
	return n, err
}

// Close implements stream.Source.
func (p placed) Close(committed bool) error {
	defer p.leave()
	defer p.watch.Stop()
	return p.Source.Close(committed)
}

// Stock is all that is in the pools. It asks no record: owner.Stock does, before it opens this one.
func (p *Pools) Stock() stream.Stock { return stock{p} }

type stock struct{ pools *Pools }

// Open implements stream.Stock.
func (s stock) Open(ctx context.Context, want wire.Want) (stream.Source, error) {
	r, _, err := s.pools.of(ctx, want.Volume)
	if errors.Is(err, provision.ErrNotFound) {
		err = s.pools.absent(ctx, want.Volume, err)
	}
	switch {
	case errors.Is(err, provision.ErrNotFound):
		return nil, wire.Errorf(wire.NoSnapshot, "%v", err)
	case errors.Is(err, provision.ErrUnavailable): // what came of the stream stays with the receiver
		return nil, wire.Errorf(wire.Busy, "%v", err)
	case err != nil:
		return nil, wire.Errorf(wire.Failed, "%v", err)
	}
	asked := func(context.Context, string, string) error { return nil }
	return (&copies.Stock{Copies: r, Now: s.pools.Clock.Now, Replica: asked}).Open(ctx, want)
}
