package stream_test

import (
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// heard reads to the end, and returns the last frame that is not data; zero if there was none.
func (r *receiver) heard() (last wire.Kind) {
	for {
		f, err := r.reader.Next(r.buf)
		if err != nil {
			return last
		}
		if f.Kind != wire.KindData {
			last = f.Kind
		}
	}
}

// peer plays the other end of a connection, as the node that its certificate names.
func (e ends) peer(t *testing.T, conn *tls.Conn) *receiver {
	t.Helper()
	return &receiver{t: t, reader: wire.NewReader(conn, e.packer), writer: wire.NewWriter(conn, e.packer), buf: make([]byte, wire.MaxData)}
}

// played runs a sender, and play at the other end of its connection.
func (e ends) played(t *testing.T, play func(*receiver)) (sendErr error) {
	t.Helper()
	var group sync.WaitGroup
	group.Go(func() {
		l, err := stream.Accept(t.Context(), e.near, e.alpha, e.packer)
		if sendErr = err; err == nil {
			_, sendErr = stream.Send(t.Context(), l, e.from, stream.Options{})
		}
	})
	config, err := e.beta.Client("alpha")
	check(t, err)
	r := e.peer(t, tls.Client(e.far, config))
	r.until(wire.KindHello)
	r.say(wire.Hello{Lowest: wire.Lowest, Highest: wire.Highest, Node: "beta"})
	play(r)
	group.Wait()
	return sendErr
}

func TestASenderRefusesUntilItsStreamIsAcceptedAndThenAborts(t *testing.T) {
	const silence wire.Kind = 0
	for name, tc := range map[string]struct {
		play func(*receiver)
		want wire.Kind
	}{
		"the request is for another node": {func(r *receiver) { r.say(want(func(w *wire.Want) { w.From = "gamma" })) }, wire.KindRefuse},
		"another stream is accepted": {func(r *receiver) {
			r.say(want(nil))
			r.until(wire.KindOffer)
			r.say(wire.Accept{ID: wire.StreamID{2}})
		}, wire.KindRefuse},
		"what follows Accept is out of turn": {func(r *receiver) {
			r.say(want(nil))
			r.until(wire.KindOffer)
			r.say(wire.Accept{ID: wire.StreamID{1}})
			r.say(wire.Hello{Lowest: wire.Lowest, Highest: wire.Highest, Node: "beta"})
		}, wire.KindAbort},
		"the receiver itself refuses": {func(r *receiver) {
			r.say(want(nil))
			r.until(wire.KindOffer)
			r.say(wire.Refuse{Reason: wire.PoolFull, Message: "no room"})
		}, silence},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := newEnds(t, random(3*wire.MaxData)).played(t, func(r *receiver) {
					tc.play(r)
					if got := r.heard(); got != tc.want {
						t.Errorf("the last word is %s, want %s", got, tc.want)
					}
				})
				if err == nil {
					t.Error("the sender says that all went well")
				}
			})
		})
	}
}

func TestAReceiverRefusesUntilItAcceptsAStreamAndThenAborts(t *testing.T) {
	for name, tc := range map[string]struct {
		play func(s *receiver, offer wire.Offer)
		want wire.Kind
	}{
		"the offer is of another volume": {func(s *receiver, o wire.Offer) {
			o.Volume = "pvc-2"
			s.say(o)
		}, wire.KindRefuse},
		"the totals are of another stream": {func(s *receiver, o wire.Offer) {
			s.say(o)
			s.until(wire.KindAccept)
			s.say(wire.Done{Frames: 3, Bytes: 1})
		}, wire.KindAbort},
		"what follows Accept is out of turn": {func(s *receiver, o wire.Offer) {
			s.say(o)
			s.until(wire.KindAccept)
			s.say(o)
		}, wire.KindAbort},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnds(t, nil)
				var group sync.WaitGroup
				group.Go(func() {
					l, err := stream.Dial(t.Context(), e.far, e.beta, "alpha", e.packer)
					check(t, err)
					if _, err := stream.Receive(t.Context(), l, e.ask, e.to, stream.Options{}); err == nil {
						t.Error("the receiver says that all went well")
					}
				})
				s := e.peer(t, tls.Server(e.near, e.alpha.Server()))
				s.say(wire.Hello{Lowest: wire.Lowest, Highest: wire.Highest, Node: "alpha"})
				_, _, _, payload := s.until(wire.KindWant)
				m, err := wire.Decode(wire.KindWant, payload)
				check(t, err)
				tc.play(s, wire.Offer{Stream: m.(wire.Want).Stream, Form: wire.Incremental})
				if got := s.heard(); got != tc.want {
					t.Errorf("the last word is %s, want %s", got, tc.want)
				}
				_ = e.near.Close()
				group.Wait()
			})
		})
	}
}

func TestAWordAboutTheWholeStreamThatCannotBeReadIsABadMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, random(3*wire.MaxData+1000))
		r := &relay{resum: true, edit: func(n int, f raw) []raw {
			if n == doneFrame {
				f = frameWith(wire.Header{Kind: wire.KindDone, Length: 1, Raw: 1}, []byte{1})
			}
			return []raw{f}
		}}
		wait := r.between(t.Context(), &e)
		o := e.run(t.Context())
		wait()
		if wire.ReasonOf(o.recvErr) != wire.BadMessage || o.received.Committed {
			t.Errorf("the receiver says %v", o.recvErr)
		}
	})
}

// A peer that speaks out of turn may also have stopped reading.
func TestASenderWaitsOnlyAMomentForAPeerThatReadsNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, random(8*wire.MaxData))
		began := time.Now()
		err := e.played(t, func(r *receiver) {
			r.say(want(nil))
			r.until(wire.KindOffer)
			r.say(wire.Accept{ID: wire.StreamID{1}})
			r.say(wire.Hello{Lowest: wire.Lowest, Highest: wire.Highest, Node: "beta"})
		})
		if took := time.Since(began); wire.ReasonOf(err) != wire.OutOfTurn || took > 5*time.Second {
			t.Errorf("it took %s: %v", took, err)
		}
	})
}

// abrupt is a connection that carries what is written a moment later. If it is closed before the
// peer has closed, it loses what it still carries, as TCP may when bytes of the peer are unread.
type abrupt struct {
	net.Conn
	mu      sync.Mutex
	carries [][]byte
	work    chan struct{}
	over    bool
}

func carrying(conn net.Conn) *abrupt {
	a := &abrupt{Conn: conn, work: make(chan struct{}, 1000)}
	go func() {
		for range a.work {
			<-time.After(time.Millisecond)
			a.mu.Lock()
			next := a.carries
			a.carries = nil
			a.mu.Unlock()
			for _, b := range next {
				if _, err := a.Conn.Write(b); err != nil {
					return
				}
			}
		}
	}()
	return a
}

func (a *abrupt) Read(b []byte) (int, error) {
	n, err := a.Conn.Read(b)
	if err != nil {
		a.mu.Lock()
		a.over = true
		a.mu.Unlock()
	}
	return n, err
}

// SetWriteDeadline does nothing: what is written is carried, and a write never waits.
func (a *abrupt) SetWriteDeadline(time.Time) error { return nil }

func (a *abrupt) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.work == nil {
		return 0, net.ErrClosed
	}
	a.carries = append(a.carries, append([]byte(nil), b...))
	a.work <- struct{}{}
	return len(b), nil
}

func (a *abrupt) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.work == nil {
		return nil
	}
	close(a.work)
	a.work = nil
	if !a.over {
		a.carries = nil
	}
	return a.Conn.Close()
}

func TestTheLastWordArrivesThoughBytesOfThePeerAreUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, random(8*wire.MaxData))
		e.to.write = func(int) error { return wire.Errorf(wire.PoolFull, "no room") }
		e.far = carrying(e.far)
		o := e.run(t.Context())
		if s, r := wire.ReasonOf(o.sendErr), wire.ReasonOf(o.recvErr); s != wire.PoolFull || r != wire.PoolFull {
			t.Errorf("the sender says %v, the receiver %v", o.sendErr, o.recvErr)
		}
		if errors.Is(o.sendErr, errPool) {
			t.Error("the cause has left its node")
		}
	})
}

// held is a connection that holds one write until release is closed, also if the connection ends meanwhile.
type held struct {
	net.Conn
	next           *atomic.Bool
	began, release chan struct{}
}

func (h held) Write(b []byte) (int, error) {
	if !h.next.CompareAndSwap(true, false) {
		return h.Conn.Write(b)
	}
	close(h.began)
	n, err := h.Conn.Write(b)
	<-h.release
	return n, err
}

// The sender hears that its stream has been committed while it says that it is alive.
func TestAStreamEndsWithTheLastWriteToItsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, random(wire.MaxData))
		h := held{e.near, new(atomic.Bool), make(chan struct{}), make(chan struct{})}
		e.near = h
		e.to.commit = func() {
			h.next.Store(true)
			<-h.began
		}
		ended := make(chan outcome, 1)
		go func() { ended <- e.run(t.Context()) }()
		<-h.began
		synctest.Wait()
		if len(e.from.closed) != 1 || !e.from.closed[0] {
			t.Errorf("the sender's snapshot was closed %v", e.from.closed)
		}
		if len(ended) > 0 {
			t.Error("the stream has ended, and a write to its connection has not")
		}
		close(h.release)
		o := <-ended
		check(t, errors.Join(o.sendErr, o.recvErr))
	})
}
