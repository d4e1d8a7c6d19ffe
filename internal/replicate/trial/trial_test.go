package trial_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/replicate/cert/certtest"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/trial"
	"berth.dev/berth/internal/replicate/wire"
)

const unit = 4 << 20

var pool = provision.PoolRef{Type: provision.LVM, Name: "vg"}

// texts keeps the data of volumes in memory: a line for each fill.
type texts struct {
	disks *memory.Disks
	// spoils is written in place of what was asked for.
	spoils string
}

func line(seed uint64, bytes int64) string { return fmt.Sprintf("seed %d %d\n", seed, bytes) }

func (x texts) Fill(_ context.Context, v provision.Volume, seed uint64, bytes int64) error {
	x.disks.Write(v.ID, x.disks.Read(v.ID)+line(seed, bytes)+x.spoils)
	return nil
}

func (x texts) Compare(_ context.Context, v provision.Volume, seeds ...uint64) (total int64, err error) {
	for l := range strings.Lines(x.disks.Read(v.ID)) {
		var seed uint64
		var bytes int64
		if _, err := fmt.Sscanf(l, "seed %d %d\n", &seed, &bytes); err != nil {
			return total, errors.New("the data is not what was written")
		}
		if len(seeds) == 0 || seed != seeds[0] {
			return total, fmt.Errorf("seed %d was not asked for", seed)
		}
		total, seeds = total+bytes, seeds[1:]
	}
	if len(seeds) > 0 {
		return total, fmt.Errorf("seeds %v are missing", seeds)
	}
	return total, nil
}

// world is the two sides of a trial.
type world struct {
	alpha, beta trial.Side
	mu          sync.Mutex
	notes       []string
}

func newWorld(t *testing.T) *world {
	w := &world{}
	a := certtest.New(t)
	side := func(node string) trial.Side {
		disks := memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 100 * unit})
		p := memory.New(disks, nil)
		t.Cleanup(func() {
			p.Wait()
			if pools, err := p.Report(context.WithoutCancel(t.Context())); err != nil || len(pools[0].Volumes) > 0 {
				t.Errorf("node %s keeps %+v, %v", node, pools, err)
			}
		})
		return trial.Side{
			Identity: a.Node(t, node), Pool: pool, Provisioner: p, Copies: p.Replicator(), Data: texts{disks: disks}, Now: time.Now,
			Note: func(line string) {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.notes = append(w.notes, node+": "+line)
			},
		}
	}
	w.alpha, w.beta = side("alpha"), side("beta")
	return w
}

// run serves and fetches, and returns what each side says.
func (w *world) run(t *testing.T, dial func(address string) func(context.Context) (net.Conn, error)) (o trial.Figures, served, fetched error) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); served = trial.Serve(ctx, w.alpha, 16*unit, l) }()
	o, fetched = trial.Fetch(t.Context(), w.beta, "alpha", dial(l.Addr().String()))
	if fetched != nil {
		stop()
	}
	<-done
	stop()
	return o, served, fetched
}

func directly(address string) func(context.Context) (net.Conn, error) {
	return func(ctx context.Context) (net.Conn, error) { return (&net.Dialer{}).DialContext(ctx, "tcp", address) }
}

// meter counts the bytes that the limits let leave.
type meter struct{ bytes atomic.Int64 }

// Wait implements stream.Pacer.
func (m *meter) Wait(_ context.Context, n int) error {
	m.bytes.Add(int64(n))
	return nil
}

func TestATrialMovesAVolumeAndLeavesNothing(t *testing.T) {
	w := newWorld(t)
	var passed meter
	w.alpha.Pace = func(wire.Want) stream.Pacer { return &passed }
	o, served, fetched := w.run(t, directly)
	if served != nil || fetched != nil {
		t.Fatalf("serving: %v; fetching: %v; %q", served, fetched, w.notes)
	}
	if passed.bytes.Load() == 0 {
		t.Error("no byte passed the limits")
	}
	if len(o.Legs) != 2 || o.Legs[0].Raw == 0 || o.Legs[1].Wire == 0 || o.Compared != 16*unit/2+16*unit/50 {
		t.Errorf("the figures are %+v", o)
	}
}

func TestATrialAsksAgainAfterACut(t *testing.T) {
	w := newWorld(t)
	dials := 0
	o, served, fetched := w.run(t, func(address string) func(context.Context) (net.Conn, error) {
		return func(ctx context.Context) (net.Conn, error) {
			if dials++; dials == 1 {
				return nil, errors.New("no route to host")
			}
			return directly(address)(ctx)
		}
	})
	if served != nil || fetched != nil || o.Legs[0].Tries != 2 {
		t.Errorf("serving: %v; fetching: %v, %+v", served, fetched, o)
	}
}

func TestATrialFindsDataThatIsNotWhatWasWritten(t *testing.T) {
	w := newWorld(t)
	data := w.alpha.Data.(texts)
	data.spoils = "rot\n"
	w.alpha.Data = data
	if _, _, err := w.run(t, directly); err == nil || !strings.Contains(err.Error(), "not what was written") {
		t.Errorf("fetching: %v", err)
	}
}

func TestATrialTouchesNoVolumeThatItDidNotMake(t *testing.T) {
	w := newWorld(t)
	for _, s := range []trial.Side{w.alpha, w.beta} {
		_, err := s.Provisioner.Create(t.Context(), provision.CreateRequest{ID: trial.Volume("alpha"), Pool: pool, Size: unit})
		if err != nil {
			t.Fatal(err)
		}
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := trial.Serve(t.Context(), w.alpha, 16*unit, l); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("serving: %v", err)
	}
	if _, err := trial.Fetch(t.Context(), w.beta, "alpha", directly(l.Addr().String())); !errors.Is(err, provision.ErrConflict) {
		t.Errorf("fetching: %v", err)
	}
	for _, s := range []trial.Side{w.alpha, w.beta} {
		if _, err := s.Provisioner.Get(t.Context(), trial.Volume("alpha")); err != nil {
			t.Errorf("node %s: %v", s.Identity.Node, err)
		}
		if err := s.Delete(t.Context(), "alpha"); err != nil {
			t.Error(err)
		}
	}
}
