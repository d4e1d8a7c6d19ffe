package stream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"

	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/wire"
)

// Link is a connection between two nodes that have proved their names to each other. It carries one
// stream.
type Link struct {
	me, peer string
	conn     *tls.Conn
	reader   *wire.Reader
	// below is the connection below TLS.
	below *patient

	// turn holds one token. Who writes a frame has it: the stream, its acknowledgements and Alive share the
	// connection.
	turn   chan struct{}
	writer *wire.Writer
}

// Dial makes a Link of a connection that this node has opened to the node peer. It takes conn
// over, whatever the outcome.
func Dial(ctx context.Context, conn net.Conn, me cert.Identity, peer string, packer *wire.Packer) (*Link, error) {
	config, err := me.Client(peer)
	if err != nil {
		_ = conn.Close()
		return nil, &wire.Error{Reason: wire.Untrusted, Message: "this node has nothing to check a peer with", Cause: err}
	}
	below := &patient{Conn: conn, began: time.Now()}
	return secure(ctx, tls.Client(below, config), below, me.Node, packer)
}

// Accept makes a Link of a connection that another node has opened. It takes conn over, whatever the
// outcome.
func Accept(ctx context.Context, conn net.Conn, me cert.Identity, packer *wire.Packer) (*Link, error) {
	below := &patient{Conn: conn, began: time.Now()}
	return secure(ctx, tls.Server(below, me.Server()), below, me.Node, packer)
}

func secure(ctx context.Context, conn *tls.Conn, below *patient, me string, packer *wire.Packer) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, opening)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, handshakeError(err)
	}
	peer, err := cert.Peer(conn.ConnectionState())
	if err != nil {
		_ = conn.Close()
		return nil, handshakeError(err)
	}
	return &Link{
		me: me, peer: peer, conn: conn, below: below,
		reader: wire.NewReader(conn, packer), writer: wire.NewWriter(conn, packer), turn: make(chan struct{}, 1),
	}, nil
}

// handshakeError tells a peer that cannot be trusted from a connection that was lost.
func handshakeError(err error) error {
	if !alert(err) && connection(err) {
		return &wire.Error{Reason: wire.Cut, Message: "the connection was lost in the handshake", Cause: err}
	}
	message := "no trust between the nodes"
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		message = fmt.Sprintf("the peer's certificate is valid from %s to %s; if it should be, compare the clocks of the nodes",
			invalid.Cert.NotBefore.Format(time.RFC3339), invalid.Cert.NotAfter.Format(time.RFC3339))
	}
	return &wire.Error{Reason: wire.Untrusted, Message: message, Cause: err}
}

// alert tells whether err is a word of TLS: crypto/tls makes these two operations of it, and names nothing
// else that a program can read.
func alert(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && (op.Op == "remote error" || op.Op == "local error")
}

// connection tells whether err is of the connection below TLS, or of the time that a handshake has.
func connection(err error) bool {
	if _, ok := errors.AsType[*net.OpError](err); ok {
		return true
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, io.ErrClosedPipe, net.ErrClosed, os.ErrDeadlineExceeded, context.DeadlineExceeded, context.Canceled} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// Peer is the name of the node at the other end, by its certificate.
func (l *Link) Peer() string { return l.peer }

// Close ends the connection without a word.
func (l *Link) Close() { _ = l.conn.NetConn().Close() }

// say writes a message.
func (l *Link) say(m wire.Message) error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return lost(l.writer.Message(m))
}

// data writes a frame of data, and returns its sum.
func (l *Link) data(p wire.Packing) (uint64, error) {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	err := l.writer.Data(p)
	l.below.move()
	return l.writer.Chain().Sum(), lost(err)
}

// finish tells the peer that this end writes no more.
func (l *Link) finish() error {
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	return l.conn.CloseWrite()
}

// hear reads the next frame that is not Alive.
func (l *Link) hear(buf []byte) (wire.Frame, error) {
	for {
		frame, err := l.reader.Next(buf)
		switch {
		case err != nil:
			return wire.Frame{}, lost(err)
		case frame.Kind == wire.KindAck: // whether data moved is in it
			return frame, nil
		case frame.Kind != wire.KindAlive:
			l.below.move()
			return frame, nil
		case len(frame.Payload) > 0:
			return wire.Frame{}, wire.Errorf(wire.BadMessage, "a message of kind %s: it has bytes at its end that say nothing", frame.Kind)
		case time.Since(l.below.moved()) > stall:
			return wire.Frame{}, wire.Errorf(wire.Stalled, "node %s is alive, and the stream has not moved for %s", l.peer, stall)
		}
	}
}

// expect reads the next message, which must be an M. A Refuse or an Abort becomes the Error that it tells.
func expect[M wire.Message](l *Link, buf []byte) (M, error) {
	var none M
	frame, err := l.hear(buf)
	if err != nil {
		return none, err
	}
	m, err := wire.Decode(frame.Kind, frame.Payload)
	if err != nil {
		return none, err
	}
	if m, ok := m.(M); ok {
		return m, nil
	}
	return none, unexpected(m, wire.KindOf(none).String())
}

// unexpected is the Error of a message where another must come.
func unexpected(m wire.Message, wanted string) error {
	switch m := m.(type) {
	case wire.Refuse:
		return told(m.Reason, m.Message)
	case wire.Abort:
		return told(m.Reason, m.Message)
	}
	return wire.Errorf(wire.OutOfTurn, "a message of kind %s came, and %s must come", wire.KindOf(m), wanted)
}

// told is the Error that a peer has told. A reason that this node does not know becomes Failed: reasons
// are in metrics, and a peer must not be able to invent any number of them.
func told(reason wire.Reason, message string) error {
	if _, ok := courses[reason]; !ok {
		reason, message = wire.Failed, string(reason)+": "+message
	}
	return &wire.Error{Reason: reason, Message: message, Remote: true}
}

// greet exchanges Hello. The sender, which was called, speaks first: so the caller, whose handshake ends
// before its certificate was judged, listens then and hears a refusal.
func (l *Link) greet(first bool) error {
	limit := time.AfterFunc(opening, l.Close)
	defer limit.Stop()
	hello := wire.Hello{Lowest: wire.Lowest, Highest: wire.Highest, Node: l.me}
	if first {
		if err := l.say(hello); err != nil {
			return err
		}
	}
	theirs, err := expect[wire.Hello](l, make([]byte, wire.MaxMessage))
	if alert(err) {
		return &wire.Error{Reason: wire.Untrusted, Message: "the peer does not believe this node's certificate", Cause: err}
	}
	if err != nil {
		return err
	}
	if theirs.Node != l.peer {
		return wire.Errorf(wire.WrongPeer, "the certificate is of node %s, and it says that it is node %s", l.peer, theirs.Node)
	}
	if _, err := theirs.Version(); err != nil {
		return err
	}
	if !first {
		return l.say(hello)
	}
	return nil
}

// keepAlive says Alive until ctx ends, or returns why the peer cannot be told.
func (l *Link) keepAlive(ctx context.Context) error {
	ticker := time.NewTicker(idle / 3)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := l.say(wire.Alive{}); err != nil {
			return err
		}
	}
}

// patient gives each read of a connection time of its own, and all reads and writes together the time in which the
// stream must move: a peer that sends a byte now and then sends no frame. It is below TLS, so that a slow link is not
// silent while a frame takes its time.
type patient struct {
	net.Conn
	// The stream moved last so long after began: a frame of data left, or one came that tells more than that the
	// peer is there.
	began time.Time
	after atomic.Int64
}

func (p *patient) move() { p.after.Store(int64(time.Since(p.began))) }

func (p *patient) moved() time.Time { return p.began.Add(time.Duration(p.after.Load())) }

func (p *patient) Read(b []byte) (int, error) {
	limit := p.moved().Add(stall + idle) // between frames the stall is told by name
	if each := time.Now().Add(idle); each.Before(limit) {
		limit = each
	}
	if err := p.SetReadDeadline(limit); err != nil {
		return 0, err
	}
	return p.Conn.Read(b)
}

// Write waits as long as the peer may stall: whether it is there at all is for Read to find out.
func (p *patient) Write(b []byte) (int, error) {
	if err := p.SetWriteDeadline(p.moved().Add(stall + idle)); err != nil {
		return 0, err
	}
	return p.Conn.Write(b)
}

// lost makes an Error of the error of a connection.
func lost(err error) error {
	switch {
	case err == nil || wire.ReasonOf(err) != "":
		return err
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &wire.Error{Reason: wire.Silent, Message: "the peer did not answer in time", Cause: err}
	}
	return &wire.Error{Reason: wire.Cut, Message: "the connection was lost", Cause: err}
}
