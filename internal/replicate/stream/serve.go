package stream

import (
	"context"
	"errors"
	"net"
	"sync"

	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/wire"
)

// Server sends the node's snapshots to the nodes that ask for them.
type Server struct {
	Identity cert.Identity
	Packer   *wire.Packer
	Stock    Stock
	Options  Options
	// Streams is how many connections one node may have at a time. A node that wants more is told Busy.
	Streams int
	// Ended is told of each connection that ended, with the name of the peer if it proved one.
	Ended func(peer string, sent Sent, err error)
}

// strangers is how many connections may be in the handshake at a time. Others wait to be accepted.
const strangers = 32

// Serve accepts connections until ctx ends or the listener fails, and closes the listener. It returns when
// all streams have ended.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	peers := &peers{streams: map[string]int{}}
	places := make(chan struct{}, strangers)
	for {
		select {
		case places <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		conn, err := listener.Accept()
		if err != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		group.Go(func() {
			link, err := Accept(ctx, conn, s.Identity, s.Packer)
			<-places
			if err != nil {
				s.ended("", Sent{}, err)
				return
			}
			sent, err := s.send(ctx, link, peers)
			s.ended(link.Peer(), sent, err)
		})
	}
}

func (s *Server) send(ctx context.Context, l *Link, peers *peers) (Sent, error) {
	if !peers.enter(l.Peer(), s.Streams) {
		err := within(ctx, l, func(context.Context, *session) error {
			return wire.Errorf(wire.Busy, "node %s has %d connections with node %s, and may have no more", l.Peer(), s.Streams, l.me)
		})
		return Sent{}, err
	}
	defer peers.leave(l.Peer())
	return Send(ctx, l, s.Stock, s.Options)
}

func (s *Server) ended(peer string, sent Sent, err error) {
	if s.Ended != nil {
		s.Ended(peer, sent, err)
	}
}

// peers counts the connections of each node.
type peers struct {
	mu      sync.Mutex
	streams map[string]int
}

func (p *peers) enter(peer string, limit int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams[peer] >= limit {
		return false
	}
	p.streams[peer]++
	return true
}

func (p *peers) leave(peer string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.streams[peer]--; p.streams[peer] == 0 {
		delete(p.streams, peer)
	}
}
