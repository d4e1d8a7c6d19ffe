package peer

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"

	"berth.dev/berth/internal/replicate/cert"
)

// port is a listener that is sorted, with servers that say which protocol they speak.
func port(t *testing.T, n *network) door {
	t.Helper()
	d := door{bufconn.Listen(64 << 10)}
	for i, l := range Sort(t.Context(), d, cert.Questions, cert.Stream) {
		me := n.identity("alpha")
		me.Protocol = []cert.Protocol{cert.Questions, cert.Stream}[i]
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go func() {
					s := tls.Server(c, me.Server())
					_, _ = io.WriteString(s, string(me.Protocol))
					_ = s.Close()
				}()
			}
		}()
	}
	return d
}

// asks says a protocol at the port, and returns what the server there says.
func asks(t *testing.T, n *network, d door, p cert.Protocol) (string, error) {
	t.Helper()
	me := n.identity("beta")
	me.Protocol = p
	config, err := me.Client("alpha")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := d.DialContext(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(connected(raw), config)
	defer c.Close()
	if err := c.HandshakeContext(t.Context()); err != nil {
		return "", err
	}
	text, err := io.ReadAll(c)
	return string(text), err
}

func TestOnePortServesEachProtocolByItsOwnServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		d := port(t, n)
		for _, p := range []cert.Protocol{cert.Stream, cert.Questions, cert.Stream} {
			if got, err := asks(t, n, d, p); err != nil || got != string(p) {
				t.Errorf("at the port for %s answers %q, %v", p, got, err)
			}
		}
		if got, err := asks(t, n, d, "another"); err == nil {
			t.Errorf("for a protocol that no server speaks answers %q", got)
		}
	})
}

func TestAConnectionThatSaysNothingIsClosedAndHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		d := port(t, n)
		mute, err := d.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if got, err := asks(t, n, d, cert.Stream); err != nil || got != string(cert.Stream) {
			t.Errorf("beside it answers %q, %v", got, err)
		}
		if _, err := mute.Read(make([]byte, 1)); err == nil || time.Since(began) != handshakeWithin {
			t.Errorf("it ends after %v with %v, want %v", time.Since(began), err, handshakeWithin)
		}
	})
}

func TestTheEndOfOneServerEndsThePort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := door{bufconn.Listen(1 << 10)}
		all := Sort(t.Context(), d, cert.Questions, cert.Stream)
		if err := all[0].Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := all[1].Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the other server accepts, or is told %v", err)
		}
	})
}

// scarceDoor is a port of a machine that has no descriptor left at first.
type scarceDoor struct {
	net.Listener
	lacks int
}

func (d *scarceDoor) Accept() (net.Conn, error) {
	if d.lacks--; d.lacks >= 0 {
		return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
	}
	return d.Listener.Accept()
}

func TestAMachineThatLacksDescriptorsForAMomentGoesOnServing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(t)
		d := door{bufconn.Listen(64 << 10)}
		l, me := Sort(t.Context(), &scarceDoor{d, 3}, cert.Questions)[0], n.identity("alpha")
		me.Protocol = cert.Questions
		go func() {
			if c, err := l.Accept(); err == nil {
				s := tls.Server(c, me.Server())
				_, _ = io.WriteString(s, "here")
				_ = s.Close()
			}
		}()
		if got, err := asks(t, n, d, cert.Questions); err != nil || got != "here" {
			t.Errorf("it answers %q, %v", got, err)
		}
	})
}
