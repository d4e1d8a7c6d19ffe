package peer

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"

	"berth.dev/berth/internal/replicate/cert"
)

// Sort gives each connection of a listener to the server of the protocol that its caller asks for, so that
// questions and streams share one port. It returns a listener for each protocol, in their order. It proves
// nothing: each server makes the handshake itself, and refuses callers of another protocol.
//
// A connection of no known protocol is closed, and so is one that does not say its protocol, or that no server
// accepts, within the time of a handshake. All end when l does, and ctx or the end of one of the returned
// listeners ends l.
func Sort(ctx context.Context, l net.Listener, protocols ...cert.Protocol) []net.Listener {
	s := &sorter{Listener: l, ended: make(chan struct{}), sorting: make(chan struct{}, maxConnections)}
	out := make([]net.Listener, len(protocols))
	for i, p := range protocols {
		sorted := &sorted{sorter: s, protocol: p, conns: make(chan net.Conn)}
		s.protocols, out[i] = append(s.protocols, sorted), sorted
	}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	go s.run(ctx)
	return out
}

// sorter is the one listener of several protocols.
type sorter struct {
	net.Listener
	protocols []*sorted
	// sorting holds a token for each connection that no server has accepted yet.
	sorting chan struct{}
	once    sync.Once
	// ended is closed when the listener failed or was closed.
	ended chan struct{}
}

func (s *sorter) Close() (err error) {
	s.once.Do(func() {
		close(s.ended)
		err = s.Listener.Close()
	})
	return err
}

func (s *sorter) run(ctx context.Context) {
	defer func() { _ = s.Close() }()
	for {
		c, err := s.Listener.Accept()
		if scarce(err) {
			select {
			case <-time.After(scarceWait):
				continue
			case <-s.ended:
				return
			}
		}
		if err != nil {
			return
		}
		select {
		case s.sorting <- struct{}{}:
			go s.sort(ctx, c)
		default:
			_ = c.Close()
		}
	}
}

// scarceWait is how long a listener rests while the machine lacks what a connection needs.
const scarceWait = 100 * time.Millisecond

// scarce tells whether the machine lacked what a connection needs: the listener is sound, and the next one may succeed.
func scarce(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED},
		func(lack error) bool { return errors.Is(err, lack) })
}

// sort hands one connection over, or closes it.
func (s *sorter) sort(ctx context.Context, c net.Conn) {
	defer func() { <-s.sorting }()
	late := time.NewTimer(handshakeWithin)
	defer late.Stop()
	_ = c.SetReadDeadline(time.Now().Add(handshakeWithin))
	wishes, read := wished(ctx, c)
	_ = c.SetReadDeadline(time.Time{})
	i := slices.IndexFunc(s.protocols, func(p *sorted) bool { return slices.Contains(wishes, string(p.protocol)) })
	if i < 0 {
		_ = c.Close()
		return
	}
	select {
	case s.protocols[i].conns <- &replayed{Conn: c, head: read}:
	case <-late.C:
		_ = c.Close()
	case <-s.ended:
		_ = c.Close()
	}
}

// wished returns the protocols that a caller offers, and the bytes that were read to find out.
func wished(ctx context.Context, c net.Conn) (protocols []string, read io.Reader) {
	var head bytes.Buffer
	_ = tls.Server(deaf{Conn: c, Reader: io.TeeReader(c, &head)}, &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			protocols = h.SupportedProtos
			return nil, errHeard
		},
	}).HandshakeContext(ctx)
	return protocols, &head
}

var errHeard = errors.New("the caller has said what it wants")

// deaf is a connection to which nothing is written: the server that gets it answers.
type deaf struct {
	net.Conn
	io.Reader
}

func (d deaf) Read(b []byte) (int, error) { return d.Reader.Read(b) }
func (deaf) Write(b []byte) (int, error)  { return len(b), nil }
func (deaf) Close() error                 { return nil }

// replayed is a connection whose first bytes were read already.
type replayed struct {
	net.Conn
	head io.Reader
}

func (r *replayed) Read(b []byte) (int, error) {
	if r.head != nil {
		if n, err := r.head.Read(b); n > 0 || err == nil {
			return n, nil
		}
		r.head = nil
	}
	return r.Conn.Read(b)
}

// sorted is the listener of one protocol.
type sorted struct {
	*sorter
	protocol cert.Protocol
	conns    chan net.Conn
}

func (s *sorted) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.ended:
		return nil, net.ErrClosed
	}
}
