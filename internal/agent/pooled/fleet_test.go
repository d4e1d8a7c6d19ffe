package pooled_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"

	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/agent/pooled"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/replicate/cert/certtest"
)

// fleet are nodes that reach each other through pipes, in the time of a bubble. Each has every volume. Its name says
// how long its streams take, and where a pod waits for it: "1s-name" and "1s-for-node".
type fleet map[string]*pooled.Pools

func owners(_ context.Context, volume string) []string {
	_, node, _ := strings.Cut(volume, "-for-")
	return []string{node}
}

func newFleet(t *testing.T, names ...string) fleet {
	t.Helper()
	authority, f, doors := certtest.New(t), fleet{}, map[string]door{}
	for _, name := range names {
		doors[name] = door{make(chan net.Conn), make(chan struct{})}
	}
	for _, name := range names {
		s, err := pooled.NewStreams(authority.Node(t, name), nil, func(ctx context.Context, to string) (net.Conn, error) { return doors[to].dial(ctx) }, logr.Discard())
		must(t, err)
		n := newNode(t, name, s)
		n.Disks = full{n.Disks}
		f[name] = n.Pools
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- s.Serve(ctx, doors[name], muted{n.Stock()}, owners) }()
		t.Cleanup(func() {
			cancel()
			must(t, <-served)
		})
	}
	return f
}

// builds fetches a volume in full, and follows what changed in it.
func (f fleet) builds(ctx context.Context, from, to, volume string) error {
	return f[to].Fetch(ctx, owner.Fetch{Volume: volume, From: from, Epoch: epoch, To: point(2)})
}

func (f fleet) follows(ctx context.Context, from, to, volume string) error {
	return f[to].Fetch(ctx, owner.Fetch{
		Volume: volume, From: from, Epoch: epoch, Base: point(1), To: point(2), Awaited: slices.Contains(owners(ctx, volume), to),
	})
}

// often fetches again and again, as an owner does, and counts how often a stream arrives.
func often(ctx context.Context, pause time.Duration, fetch func() error) *atomic.Int64 {
	came := new(atomic.Int64)
	go func() {
		for ctx.Err() == nil {
			wait := 5 * time.Second
			if fetch() == nil {
				came.Add(1)
				wait = pause
			}
			select {
			case <-time.After(wait):
			case <-ctx.Done():
			}
		}
	}()
	return came
}

// sum waits for the end, and adds up what has come.
func sum(ctx context.Context, counts []*atomic.Int64) (all, least int64) {
	<-ctx.Done()
	synctest.Wait()
	least = 1 << 60
	for _, c := range counts {
		all, least = all+c.Load(), min(least, c.Load())
	}
	return all, least
}

// door is a listener.
type door struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (d door) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case d.conns <- far:
		return newBuffered(near), nil
	case <-d.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (d door) Accept() (net.Conn, error) {
	select {
	case c := <-d.conns:
		return newBuffered(c), nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d door) Close() error {
	close(d.closed)
	return nil
}

func (d door) Addr() net.Addr { return &net.UnixAddr{} }

// buffered is a connection with room for what was not read yet, as one of the kernel has.
type buffered struct {
	net.Conn
	written chan []byte
	ended   chan struct{}
	end     func()
}

func newBuffered(c net.Conn) *buffered {
	b := &buffered{Conn: c, written: make(chan []byte, 1000), ended: make(chan struct{})}
	b.end = sync.OnceFunc(func() { close(b.ended) })
	go func() {
		defer b.end()
		for {
			select {
			case p := <-b.written:
				if _, err := c.Write(p); err != nil {
					return
				}
			case <-b.ended:
				return
			}
		}
	}()
	return b
}

func (b *buffered) Close() error {
	b.end()
	return b.Conn.Close()
}

func (b *buffered) Write(p []byte) (int, error) {
	select {
	case <-b.ended:
		return 0, net.ErrClosed
	case b.written <- slices.Clone(p):
		return len(p), nil
	}
}

func (*buffered) SetWriteDeadline(time.Time) error { return nil }

// full are disks with every volume, each of which has two points.
type full struct{ pooled.Disks }

func (full) Get(_ context.Context, id string) (provision.Volume, error) {
	return provision.Volume{ID: id, Pool: vg}, nil
}

func (full) ReplicatorOf(context.Context, string) (provision.Replicator, error) { return slow{}, nil }

// slow are copies whose streams take a while to be applied.
type slow struct{ provision.Replicator }

func (slow) Abilities() provision.Abilities { return provision.Abilities{Format: "slow"} }

func (slow) State(context.Context, string) (provision.Replica, error) {
	return provision.Replica{Copy: ownership.Copy{Exists: true, Size: unit, Promise: promise, Points: []lineage.Point{point(1), point(2)}}}, nil
}

func (slow) Hold(context.Context, string, ownership.Hold) error { return nil }
func (slow) Abort(context.Context, string) error                { return nil }

func (slow) Send(_ context.Context, _ provision.SendRequest, pipe *os.File) error {
	_, err := pipe.WriteString("text")
	return err
}

// Receive does not read: time in a bubble stands still while a pipe of the system is read.
func (slow) Receive(ctx context.Context, h provision.StreamHeader, _ *os.File) error {
	text, _, _ := strings.Cut(h.Volume, "-")
	if text == "deaf" {
		<-time.After(hangs)
		return errors.New("the disk is back")
	}
	lasts, err := time.ParseDuration(text)
	if err != nil {
		return err
	}
	select {
	case <-time.After(lasts):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Each node is the primary of some volumes, and follows others.
func TestNodesThatFollowEachOtherDoNotWaitForEachOther(t *testing.T) {
	for name, ways := range map[string][][2]string{
		"two":             {{"alpha", "beta"}, {"beta", "alpha"}},
		"a ring of three": {{"alpha", "beta"}, {"beta", "gamma"}, {"gamma", "alpha"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, "alpha", "beta", "gamma")
				while, end := context.WithTimeout(t.Context(), 20*time.Minute)
				defer end()
				var came []*atomic.Int64
				for _, way := range ways {
					came = append(came, f.followsMany(while, way[0], way[1], 10)...)
				}
				if all, least := sum(while, came); least < 18 {
					t.Errorf("%d volumes, one snapshot a minute for 20 minutes: %d snapshots came, %d of one volume", len(came), all, least)
				}
			})
		})
	}
}

// All places of the sender, or of the receiver, have streams that last, and an older one waits.
func TestAStreamThatAPodWaitsForComesFirst(t *testing.T) {
	for name, ways := range map[string][][2]string{
		"at the sender":   {{"alpha", "gamma"}, {"alpha", "gamma"}, {"alpha", "delta"}, {"alpha", "delta"}, {"alpha", "epsilon"}},
		"at the receiver": {{"gamma", "beta"}, {"delta", "beta"}, {"epsilon", "beta"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, "alpha", "beta", "gamma", "delta", "epsilon")
				began := time.Now()
				while, end := context.WithTimeout(t.Context(), 9*time.Minute)
				defer end()
				for i, way := range ways {
					lasts := "9m"
					if i == 0 {
						lasts = "5m"
					}
					often(while, time.Minute, func() error { return f.builds(while, way[0], way[1], fmt.Sprint(lasts, "-", i)) })
					synctest.Wait()
				}
				if err := f.follows(while, "alpha", "beta", "1s-for-beta"); err != nil || time.Since(began) > 6*time.Minute {
					t.Errorf("a place was free after five minutes; the stream ends after %v with %v", time.Since(began), err)
				}
				<-while.Done()
			})
		})
	}
}

// busy keeps all places of a node to send, and more streams waiting for them.
func (f fleet) busy(ctx context.Context, from, lasts string, to ...string) {
	for _, node := range to {
		for i := range 3 {
			often(ctx, 5*time.Second, func() error { return f.builds(ctx, from, node, fmt.Sprint(lasts, "-", from, i)) })
		}
	}
}

func TestABusySourceDoesNotHoldUpAnIdleOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "alpha", "beta", "gamma", "delta", "epsilon", "eta")
		while, end := context.WithTimeout(t.Context(), 30*time.Minute)
		defer end()
		f.busy(while, "alpha", "9m", "gamma", "delta", "eta")
		synctest.Wait()
		f.followsMany(while, "alpha", "beta", 5)
		if all, least := sum(while, f.followsMany(while, "epsilon", "beta", 5)); least < 27 {
			t.Errorf("5 volumes, one snapshot a minute for half an hour: %d snapshots came from the idle node, %d of one volume", all, least)
		}
	})
}

// followsMany follows so many volumes, and counts what came of each.
func (f fleet) followsMany(ctx context.Context, from, to string, volumes int) (came []*atomic.Int64) {
	for i := range volumes {
		came = append(came, often(ctx, time.Minute, func() error { return f.follows(ctx, from, to, fmt.Sprint("1s-", from, i)) }))
	}
	return came
}

// Copies are built all the time.
func TestNobodyWaitsForEver(t *testing.T) {
	for name, tc := range map[string]struct {
		receiverToo bool
		volumes     int
		least       int64
	}{
		"for a busy sender":                         {false, 3, 10},
		"for a busy sender, in a long line":         {false, 24, 1},
		"between a busy sender and a busy receiver": {true, 3, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta")
				while, end := context.WithTimeout(t.Context(), 3*time.Hour)
				defer end()
				f.busy(while, "alpha", "9m", "gamma", "delta", "eta")
				if tc.receiverToo {
					f.busy(while, "epsilon", "7m", "beta")
					f.busy(while, "zeta", "8m", "beta")
				}
				synctest.Wait()
				if all, least := sum(while, f.followsMany(while, "alpha", "beta", tc.volumes)); least < tc.least {
					t.Errorf("%d snapshots came, %d of one volume", all, least)
				}
			})
		})
	}
}

func TestALongLineDoesNotKeepAPodWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, "alpha", "beta", "gamma", "delta", "eta")
		while, end := context.WithTimeout(t.Context(), 15*time.Minute)
		defer end()
		f.busy(while, "alpha", "9m", "gamma", "delta", "eta")
		f.followsMany(while, "alpha", "beta", 40)
		<-time.After(5 * time.Minute)
		if err := f.follows(while, "alpha", "beta", "1s-for-beta"); err != nil {
			t.Error(err)
		}
		<-while.Done()
	})
}
