package stream_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/certtest"
	"berth.dev/berth/internal/replicate/limit"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// counting is a pool's source that counts what was read from it.
func counting(read *int) func(context.Context, []byte) io.Reader {
	return func(_ context.Context, rest []byte) io.Reader {
		return reader(func(b []byte) (int, error) {
			n := copy(b, rest)
			rest = rest[n:]
			*read += n
			if n == 0 {
				return 0, io.EOF
			}
			return n, nil
		})
	}
}

type reader func([]byte) (int, error)

func (r reader) Read(b []byte) (int, error) { return r(b) }

func TestOnlyNodesOfTheClusterSpeakWithEachOther(t *testing.T) {
	tests := map[string]struct {
		change func(t *testing.T, e *ends)
		// says is a part of what one of the nodes tells its administrator; empty if the stream arrives.
		says string
	}{
		"the receiver's certificate has expired": {change: func(t *testing.T, e *ends) {
			prove(e.beta, e.authority.Sign(t, time.Now().Add(-13*time.Hour), cert.Name("beta")))
		}, says: "its clock says"},
		"the sender's certificate has expired by the receiver's clock": {change: func(_ *testing.T, e *ends) {
			e.beta.Now = func() time.Time { return time.Now().Add(13 * time.Hour) }
			prove(e.beta, e.authority.Sign(t, e.beta.Now(), cert.Name("beta")))
		}, says: "compare the clocks"},
		"the sender's certificate is of another cluster": {change: func(t *testing.T, e *ends) {
			prove(e.alpha, certtest.New(t).Sign(t, time.Now(), cert.Name("alpha")))
		}, says: "unknown authority"},
		"the receiver's certificate is of another cluster": {change: func(t *testing.T, e *ends) {
			prove(e.beta, certtest.New(t).Sign(t, time.Now(), cert.Name("beta")))
		}, says: "unknown authority"},
		"the receiver has no certificate yet": {change: func(_ *testing.T, e *ends) { prove(e.beta, nil) }, says: "CertificateSigningRequest"},
		"the receiver has another node's certificate": {change: func(t *testing.T, e *ends) {
			prove(e.beta, e.authority.Sign(t, time.Now(), cert.Name("gamma")))
		}, says: "its certificate is of node gamma"},
		"the receiver's certificate has a second name": {change: func(t *testing.T, e *ends) {
			prove(e.beta, e.authority.Sign(t, time.Now(), cert.Name("beta"), cert.Name("gamma")))
		}, says: "has 2 names"},
		"the sender's certificate is of something that is no node": {change: func(t *testing.T, e *ends) {
			prove(e.alpha, e.authority.Sign(t, time.Now(), "alpha.example.org"))
		}, says: "no node's name"},
		"a node is named like an address": {change: func(t *testing.T, e *ends) {
			e.alpha, e.ask.From = e.authority.Node(t, "10.0.0.1"), "10.0.0.1"
		}},
		"the receiver's clock is an hour late": {change: func(_ *testing.T, e *ends) {
			e.beta.Now = func() time.Time { return time.Now().Add(-time.Hour) }
		}},
		"the receiver's clock is an hour early": {change: func(_ *testing.T, e *ends) {
			e.beta.Now = func() time.Time { return time.Now().Add(time.Hour) }
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				content := random(1000)
				e := newEnds(t, content)
				test.change(t, &e)
				o := e.run(t.Context())
				if test.says == "" {
					check(t, errors.Join(o.sendErr, o.recvErr))
					return
				}
				if o.sendErr == nil || o.recvErr == nil || e.to.begun > 0 {
					t.Fatalf("the sender says %v, the receiver %v", o.sendErr, o.recvErr)
				}
				if all := o.sendErr.Error() + o.recvErr.Error(); !strings.Contains(all, test.says) {
					t.Errorf("no end says %q: %s", test.says, all)
				}
				if wire.ReasonOf(o.recvErr) != wire.Untrusted || stream.After(o.recvErr).Next != stream.Person {
					t.Errorf("the receiver says %v, want %s", o.recvErr, wire.Untrusted)
				}
			})
		})
	}
}

func prove(i cert.Identity, c *tls.Certificate) {
	i.Source.(*certtest.Proofs).Set(c)
}

func TestACertificateIsRenewedWhileAStreamGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := random(8 * wire.MaxData)
		e := newEnds(t, content)
		var passed time.Duration
		now := func() time.Time { return time.Now().Add(passed) }
		e.alpha.Now, e.beta.Now = now, now
		e.sending.Progress = func(p stream.Progress) {
			if p.Raw == 4*wire.MaxData {
				passed = 20 * time.Hour // the first certificates have expired
				prove(e.alpha, e.authority.Sign(t, now(), cert.Name("alpha")))
				prove(e.beta, e.authority.Sign(t, now(), cert.Name("beta")))
			}
		}
		o := e.run(t.Context())
		check(t, errors.Join(o.sendErr, o.recvErr))
		if !bytes.Equal(e.to.snapshots[target], content) {
			t.Error("other bytes arrived")
		}
		next := e.again(content)
		o = next.run(t.Context())
		check(t, errors.Join(o.sendErr, o.recvErr))
	})
}

func TestAStrangerIsToldNothing(t *testing.T) {
	tests := map[string][]byte{
		"another protocol":     []byte("GET / HTTP/1.1\r\nHost: alpha\r\n\r\n"),
		"random bytes":         random(4096),
		"nothing for ten days": nil,
	}
	for name, bytes := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnds(t, random(1000))
				go func() {
					_, _ = e.far.Write(bytes)
					_, _ = io.Copy(io.Discard, e.far)
				}()
				begin := time.Now()
				_, err := stream.Accept(t.Context(), e.near, e.alpha, e.packer)
				if err == nil {
					t.Fatal("a stranger has a link")
				}
				if waited := time.Since(begin); waited > time.Minute {
					t.Errorf("the node waited %s for a stranger", waited)
				}
			})
		})
	}
}

// lonely is a connection whose cable was cut after some bytes: nothing arrives, nothing fails.
type lonely struct {
	net.Conn
	left int
}

func (l *lonely) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return len(b), nil
	}
	return l.Conn.Write(b)
}

func TestASilentPeerIsGivenUp(t *testing.T) {
	tests := map[string]struct {
		sender, receiver bool
		// sent and received are what the two ends say.
		sent, received []wire.Reason
	}{
		"the sender's cable is cut": {sender: true, sent: []wire.Reason{wire.Silent, wire.Unconfirmed}, received: []wire.Reason{wire.Silent}},
		"both cables are cut": {sender: true, receiver: true,
			sent: []wire.Reason{wire.Silent, wire.Unconfirmed}, received: []wire.Reason{wire.Silent}},
		"the receiver's cable is cut, and it has the snapshot": {receiver: true,
			sent: []wire.Reason{wire.Unconfirmed}, received: []wire.Reason{""}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				content := random(6 * wire.MaxData)
				e := newEnds(t, content)
				whole := &lonely{Conn: e.far, left: 1 << 30}
				e.far = whole
				o := e.run(t.Context())
				check(t, errors.Join(o.sendErr, o.recvErr))
				e = e.again(content)
				if test.sender {
					e.near = &lonely{Conn: e.near, left: 3 * wire.MaxData}
				}
				if test.receiver {
					e.far = &lonely{Conn: e.far, left: 1<<30 - whole.left - 90} // Committed and the end of TLS are 82 bytes
				}
				begin := time.Now()
				o = e.run(t.Context())
				if r := wire.ReasonOf(o.sendErr); !slices.Contains(test.sent, r) {
					t.Errorf("the sender says %v", o.sendErr)
				}
				if r := wire.ReasonOf(o.recvErr); !slices.Contains(test.received, r) {
					t.Errorf("the receiver says %v", o.recvErr)
				}
				if waited := time.Since(begin); waited > 2*idle {
					t.Errorf("the ends waited %s", waited)
				}
				if !o.received.Committed {
					goOn(t, e, content)
				}
			})
		})
	}
}

// idle is how long a node waits for a peer that says nothing, as docs/replication-stream.md has it.
const idle = 30 * time.Second

// Half of a frame arrives in the time in which a peer must say something.
func TestASlowLinkIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := random(3 * wire.MaxData)
		e := newEnds(t, content)
		e.near = slow{Conn: e.near, each: idle / 8} // for 16 KiB
		o := e.run(t.Context())
		check(t, errors.Join(o.sendErr, o.recvErr))
		if !bytes.Equal(e.to.snapshots[target], content) {
			t.Error("other bytes arrived")
		}
	})
}

// The receiver acknowledges each MiB, which takes an hour here.
func TestAStreamThatItsLimitSlowsDownHasNotStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, random(6*wire.MaxData))
		gate := limit.NewLimits().Gate(600)
		e.sending.Pace = func(wire.Want) stream.Pacer { return gate }
		o := e.run(t.Context())
		check(t, errors.Join(o.sendErr, o.recvErr))
	})
}

// dribbling is the connection of a peer that sends a few bytes well, and then each byte by itself.
type dribbling struct {
	net.Conn
	well atomic.Int64
}

func (d *dribbling) SetWriteDeadline(time.Time) error { return nil }

func (d *dribbling) Write(b []byte) (int, error) {
	if d.well.Add(-int64(len(b))) >= 0 {
		return d.Conn.Write(b)
	}
	for i := range b {
		<-time.After(idle - time.Second)
		if _, err := d.Conn.Write(b[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(b), nil
}

// deaf hears nothing, as the socket of a node whose program hangs.
type deaf struct{ *dribbling }

func (d deaf) Read(b []byte) (int, error) {
	if d.well.Load() > 0 {
		return d.Conn.Read(b)
	}
	for {
		if _, err := d.Conn.Read(b); err != nil {
			return 0, err
		}
	}
}

// No frame ends, so nothing tells the receiver that the stream stands still.
func TestASenderThatDribblesIsGivenUp(t *testing.T) {
	for name, hears := range map[string]bool{"and hears": true, "and hears nothing": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnds(t, random(3*wire.MaxData))
				slow := &dribbling{Conn: e.near}
				slow.well.Store(10000)
				if e.near = slow; !hears {
					e.near = deaf{slow}
				}
				ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
				defer cancel()
				begin := time.Now()
				o := e.run(ctx)
				if waited := time.Since(begin); waited > stall+2*idle || o.recvErr == nil {
					t.Errorf("after %s the receiver says %v", waited, o.recvErr)
				}
			})
		})
	}
}

// stall is how long a stream may stand still, as docs/replication-stream.md has it.
const stall = 10 * time.Minute

// crowded has no place for a stream until the stream is given up.
type crowded struct{ left chan error }

func (c crowded) Open(ctx context.Context, _ wire.Want) (stream.Source, error) {
	<-ctx.Done()
	c.left <- context.Cause(ctx)
	return nil, wire.Errorf(wire.Busy, "there is no place")
}

func TestASenderThatWaitsForAPlaceLearnsThatItsPeerIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, random(10))
		stock, ctx := crowded{make(chan error, 1)}, t.Context()
		ended := make(chan error, 1)
		go func() {
			l, err := stream.Accept(ctx, e.near, e.alpha, e.packer)
			if err == nil {
				_, err = stream.Send(ctx, l, stock, stream.Options{})
			}
			ended <- err
		}()
		l, err := stream.Dial(t.Context(), e.far, e.beta, "alpha", e.packer)
		check(t, err)
		asking, leave := context.WithTimeout(t.Context(), time.Minute)
		defer leave()
		if _, err := stream.Receive(asking, l, e.ask, e.to, stream.Options{}); err == nil {
			t.Error("a stream came")
		}
		gone := time.Now()
		if cause := <-stock.left; cause == nil {
			t.Error("it ended without a cause")
		}
		if err := <-ended; err == nil || time.Since(gone) > 2*idle {
			t.Errorf("it ended %s after its peer, with %v", time.Since(gone), err)
		}
	})
}

// slow is a connection on which each write takes time.
type slow struct {
	net.Conn
	each time.Duration
}

func (s slow) Write(b []byte) (int, error) {
	<-time.After(s.each)
	return s.Conn.Write(b)
}

func TestAPeerThatIsAliveAndSendsNothingIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := random(2 * wire.MaxData)
		e := newEnds(t, content)
		e.from.source = func(ctx context.Context, rest []byte) io.Reader {
			return io.MultiReader(bytes.NewReader(rest[:wire.MaxData]), reader(func([]byte) (int, error) {
				<-ctx.Done() // the pool is gone, or the peer is hostile
				return 0, ctx.Err()
			}))
		}
		begin := time.Now()
		o := e.run(t.Context())
		if wire.ReasonOf(o.recvErr) != wire.Stalled || wire.ReasonOf(o.sendErr) != wire.Stalled {
			t.Errorf("the sender says %v, the receiver %v", o.sendErr, o.recvErr)
		}
		if waited := time.Since(begin); waited < 9*time.Minute || waited > 12*time.Minute {
			t.Errorf("the ends waited %s", waited)
		}
	})
}
