package pooled_test

import (
	"context"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/agent/pooled"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/replicate/cert/certtest"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// pair are two nodes of one cluster, which reach each other over TCP.
func pair(t *testing.T, may func(stream.Stock) stream.Stock) (alpha, beta *node) {
	t.Helper()
	authority, nodes := certtest.New(t), map[string]*node{}
	dial := func(ctx context.Context, to string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", nodes[to].address)
	}
	for _, name := range []string{"alpha", "beta"} {
		passed := new(meter)
		s, err := pooled.NewStreams(authority.Node(t, name), func(wire.Want) stream.Pacer { return passed }, dial, logr.Discard())
		must(t, err)
		n := newNode(t, name, s)
		n.passed = passed
		nodes[name] = n
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		must(t, err)
		n.address = l.Addr().String()
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() {
			served <- s.Serve(ctx, l, may(n.Stock()), func(context.Context, string) []string { return nil })
		}()
		t.Cleanup(func() {
			cancel()
			if err := <-served; err != nil {
				t.Errorf("serving ended with %v", err)
			}
		})
	}
	return nodes["alpha"], nodes["beta"]
}

// meter counts the bytes that a node lets leave.
type meter struct{ bytes atomic.Int64 }

// Wait implements stream.Pacer.
func (m *meter) Wait(_ context.Context, n int) error {
	m.bytes.Add(int64(n))
	return nil
}

func all(s stream.Stock) stream.Stock { return s }

func TestACopyArrivesInFullAndThenWhatChanged(t *testing.T) {
	alpha, beta := pair(t, all)
	alpha.made("first")
	must(t, beta.Make(t.Context(), object(), 16*unit))
	must(t, beta.Mark(t.Context(), volume, provision.Mark{Promise: promise}))
	must(t, beta.Fetch(t.Context(), owner.Fetch{Volume: volume, From: "alpha", Epoch: epoch, To: point(1)}))
	alpha.takes(2, "second")
	must(t, beta.Fetch(t.Context(), owner.Fetch{Volume: volume, From: "alpha", Epoch: epoch, Base: point(1), To: point(2)}))
	s, err := beta.State(t.Context(), volume)
	if err != nil || s.Tip() != point(2) || !s.Has(point(1)) || s.Promise.Epoch != epoch {
		t.Errorf("the copy is %+v, %v", s.Copy, err)
	}
	held := func() bool {
		s, err := alpha.State(t.Context(), volume)
		return err == nil && slices.ContainsFunc(s.Holds, func(h ownership.Hold) bool {
			return h.For == "beta" && h.Point == point(2) && h.Until.After(time.Now())
		})
	}
	if !held() {
		t.Error("the source does not hold the point that both have in common")
	}
	if alpha.passed.bytes.Load() < int64(len("firstsecond")) || beta.passed.bytes.Load() != 0 {
		t.Errorf("the limits of the sender let %d bytes pass, those of the receiver %d", alpha.passed.bytes.Load(), beta.passed.bytes.Load())
	}
}

// refusing is a stock of which a node may have nothing.
type refusing struct{ stream.Stock }

func (refusing) Open(context.Context, wire.Want) (stream.Source, error) {
	return nil, wire.Errorf(wire.NotReplica, "it has no replica")
}

func TestANodeThatMayHaveNothingGetsNothing(t *testing.T) {
	alpha, beta := pair(t, func(s stream.Stock) stream.Stock { return refusing{s} })
	alpha.made("first")
	must(t, beta.Make(t.Context(), object(), 16*unit))
	err := beta.Fetch(t.Context(), owner.Fetch{Volume: volume, From: "alpha", Epoch: epoch, To: point(1)})
	if wire.ReasonOf(err) != wire.NotReplica {
		t.Errorf("it is told %v", err)
	}
	if s, _ := beta.State(t.Context(), volume); !s.Tip().IsZero() {
		t.Errorf("it has %v", s.Tip())
	}
}

func TestAVolumeThatTheSourceDoesNotHaveIsNoSnapshot(t *testing.T) {
	_, beta := pair(t, all)
	must(t, beta.Make(t.Context(), object(), 16*unit))
	if err := beta.Fetch(t.Context(), owner.Fetch{Volume: volume, From: "alpha", Epoch: epoch, To: point(1)}); wire.ReasonOf(err) != wire.NoSnapshot {
		t.Errorf("it is told %v", err)
	}
}

// A node that has begun anew may not have read its pools yet.
func TestAHalfStreamStaysWhileThePoolOfItsSourceIsAway(t *testing.T) {
	alpha, beta := pair(t, all)
	alpha.made(strings.Repeat("text", 100))
	must(t, beta.Make(t.Context(), object(), 16*unit))
	replicator := func(n *node) provision.Replicator { return memory.New(n.disks, nil).Replicator() }
	s, err := conformance.Send(t.Context(), replicator(alpha), provision.SendRequest{Volume: volume, Target: point(1)})
	must(t, err)
	s.From, s.Bytes = "alpha", s.Bytes[:len(s.Bytes)-40]
	if err := conformance.Receive(t.Context(), replicator(beta), s); err == nil {
		t.Fatal("a part of a stream is taken for the whole")
	}
	half := func() *provision.Receiving {
		s, err := beta.State(t.Context(), volume)
		must(t, err)
		return s.Receiving
	}
	if half() == nil {
		t.Fatal("there is no half stream")
	}
	alpha.disks.RemovePool(vg)
	alpha.read = nil
	err = beta.Fetch(t.Context(), owner.Fetch{Volume: volume, From: "alpha", Epoch: epoch, To: point(1)})
	if wire.ReasonOf(err) != wire.Busy || half() == nil {
		t.Errorf("the source says %v; of the stream there is left %+v", err, half())
	}
}

// More streams than there are places wait, and all come to their turn.
func TestStreamsThatFindNoPlaceWaitForOne(t *testing.T) {
	alpha, beta := pair(t, all)
	ids := []string{}
	for i := range 9 {
		id := volume[:len(volume)-1] + string(rune('1'+i))
		ids = append(ids, id)
		v := object(func(v *v1alpha1.Volume) { v.Name = id })
		for _, n := range []*node{alpha, beta} {
			must(t, n.Make(t.Context(), v, unit))
			must(t, n.Mark(t.Context(), id, provision.Mark{Promise: promise}))
		}
		must(t, alpha.Mark(t.Context(), id, provision.Mark{Opened: epoch}))
		_, err := alpha.Writable(t.Context(), id)
		must(t, err)
		must(t, alpha.Snapshot(t.Context(), provision.PointRequest{Volume: id, Point: point(1)}))
	}
	ends := make(chan error, len(ids))
	for _, id := range ids {
		go func() {
			ends <- beta.Fetch(t.Context(), owner.Fetch{Volume: id, From: "alpha", Epoch: epoch, To: point(1)})
		}()
	}
	for range ids {
		if err := <-ends; err != nil {
			t.Error(err)
		}
	}
}
