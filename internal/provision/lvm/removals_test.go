package lvm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

// gate holds the first process that removes anything until the gate is opened.
type gate struct {
	run.Runner
	once        sync.Once
	begun, open chan struct{}
}

func gated(r run.Runner) *gate {
	return &gate{Runner: r, begun: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) Change(c run.Command) ([]byte, error) {
	if c.Operation == "lvremove" {
		g.once.Do(func() { close(g.begun); <-g.open })
	}
	return g.Runner.Change(c)
}

// underWay is a removal in progress.
type underWay struct {
	id    string
	ended chan error
}

func removeSoon(ctx context.Context, p *lvm.Provisioner, id string) underWay {
	d := underWay{id, make(chan error, 1)}
	go func() {
		if provision.CheckSnapshotID(id) == nil {
			d.ended <- p.DeleteSnapshot(ctx, id)
			return
		}
		d.ended <- p.Delete(ctx, id)
	}()
	return d
}

// removeAtOnce removes the first of ids, and all others while the process of the first is at work.
func (g *gate) removeAtOnce(t *testing.T, p *lvm.Provisioner, ids ...string) (failed map[string]error) {
	t.Helper()
	all := []underWay{removeSoon(t.Context(), p, ids[0])}
	<-g.begun
	for _, id := range ids[1:] {
		all = append(all, removeSoon(t.Context(), p, id))
	}
	eventually(t, func() bool { return p.Waiting() == len(ids)-1 }, "they do not all wait")
	close(g.open)
	failed = map[string]error{}
	for _, d := range all {
		if err := <-d.ended; err != nil {
			failed[d.id] = err
		}
	}
	return failed
}

// carveSome makes volumes that are not wiped when they are deleted, and returns their ids.
func carveSome(t *testing.T, p *lvm.Provisioner, pool provision.PoolRef, n int) (ids []string) {
	t.Helper()
	for i := range n {
		r := requestIn(pool, fmt.Sprintf("pvc-%02d", i), 1)
		r.Wipe = provision.WipeNone
		if _, err := p.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

// removing starts a provisioner on a played host. A gate holds its first removal.
func removing(t *testing.T) (*lvmtest.Host, *lvm.Provisioner, *gate, *runtest.Counter) {
	t.Helper()
	host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
	host.AddThinPool(vg.Name, "pool", 50)
	counter, c := counted(host)
	g := gated(c.Runner)
	c.Runner = g
	p, _ := start(t, c)
	awaitChange(t, p) // it watches
	return host, p, g, counter
}

func TestWaitingRemovalsRunInOneProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		pool provision.PoolRef
		n    int
		want map[string]int
	}{
		"two removals from a group":       {vg, 2, map[string]int{"lvremove": 2}},
		"eight removals from a group":     {vg, 8, map[string]int{"lvremove": 2}},
		"eight removals from a thin pool": {thin, 8, map[string]int{"lvremove": 2}},
		"twenty removals from a group":    {vg, 1 + 16 + 3, map[string]int{"lvremove": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			host, p, g, counter := removing(t)
			ids := carveSome(t, p, tc.pool, tc.n)
			counter.Take()
			if failed := g.removeAtOnce(t, p, ids...); len(failed) > 0 {
				t.Errorf("failed: %v", failed)
			}
			if left := poolOf(t, p, tc.pool); len(left.Volumes) > 0 || left.Free != left.Total-left.Foreign {
				t.Errorf("left is %+v", left)
			}
			if got := counter.Take(); !cmp.Equal(got, tc.want) { // and nothing was read again
				t.Errorf("started %v, want %v", got, tc.want)
			}
			for _, id := range ids {
				host.On("/dev/vg-a/"+id, func(v *lvmtest.Volume) {
					if v != nil {
						t.Errorf("%s is there", id)
					}
				})
			}
		})
	}
}

func TestTheCallerThatGetsTheLockFirstTakesAllRemovalsThatWait(t *testing.T) {
	ids := []string{"a", "b", "c", "d"}
	for _, tc := range []struct {
		caller      string
		atMost      int
		taken, left []string
	}{
		{"a", 16, []string{"a", "b", "c", "d"}, nil},
		{"c", 16, []string{"c", "a", "b", "d"}, nil},
		{"d", 3, []string{"d", "a", "b"}, []string{"c"}},
		{"a", 3, []string{"a", "b", "c"}, []string{"d"}},
		{"b", 1, []string{"b"}, []string{"a", "c", "d"}}, // its caller gave up
		{"nobody", 16, nil, ids},
	} {
		taken, left := lvm.Taken(ids, tc.caller, tc.atMost)
		if !cmp.Equal(taken, tc.taken) || !cmp.Equal(left, tc.left) {
			t.Errorf("the caller of %s took %v of at most %d, and %v wait; want %v and %v",
				tc.caller, taken, tc.atMost, left, tc.taken, tc.left)
		}
	}
}

func TestAVolumeThatCannotBeRemovedKeepsNoOtherFromRemoval(t *testing.T) {
	host, p, g, counter := removing(t)
	ids := carveSome(t, p, thin, 5)
	if _, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: ids[2]}); err != nil {
		t.Fatal(err)
	}
	host.On("/dev/vg-a/"+ids[2], func(v *lvmtest.Volume) { v.Open = true })
	counter.Take()
	failed := g.removeAtOnce(t, p, append(ids, "snap-1")...)
	if len(failed) != 1 || !errors.Is(failed[ids[2]], provision.ErrInUse) || !strings.Contains(failed[ids[2]].Error(), ids[2]) {
		t.Errorf("failed: %v; want %s alone, which is open", failed, ids[2])
	}
	if left := poolOf(t, p, thin); len(left.Volumes) != 1 || left.Volumes[0].ID != ids[2] || len(left.Snapshots) != 0 {
		t.Errorf("left is %+v", left)
	}
}

func TestACallerThatGivesUpWaitingRemovesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, p, g, _ := removing(t)
		ids := carveSome(t, p, vg, 3)
		first := removeSoon(t.Context(), p, ids[0])
		<-g.begun
		ctx, cancel := context.WithCancel(t.Context())
		second := removeSoon(ctx, p, ids[1])
		eventually(t, func() bool { return p.Waiting() == 1 }, "it does not wait")
		third := removeSoon(t.Context(), p, ids[2])
		eventually(t, func() bool { return p.Waiting() == 2 }, "it does not wait")
		cancel()
		if err := <-second.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("who gave up got %v", err)
		}
		close(g.open)
		if err := errors.Join(<-first.ended, <-third.ended); err != nil {
			t.Error(err)
		}
		if left := poolOf(t, p, vg); len(left.Volumes) != 1 || left.Volumes[0].ID != ids[1] {
			t.Errorf("left is %+v", left)
		}
		if err := p.Delete(t.Context(), ids[1]); err != nil { // its lock was released
			t.Error(err)
		}
	})
}

func TestAChangeByOthersIsNoticedThoughSeveralAreRemoved(t *testing.T) {
	host, p, g, _ := removing(t)
	ids := carveSome(t, p, vg, 4)
	before := poolOf(t, p, vg).Foreign
	host.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
		out, err := do()
		if removed(c) > 1 {
			host.PutForeign(vg.Name, "theirs", unit)
		}
		return out, err
	}
	if failed := g.removeAtOnce(t, p, ids...); len(failed) > 0 {
		t.Fatal(failed)
	}
	if left := poolOf(t, p, vg); left.Foreign != before+unit {
		t.Errorf("left is %+v, want what is foreign to be %d and a unit", left, before)
	}
}

// dying is a process that ends while it removes several logical volumes. gone is how many of them
// are removed by then.
type dying struct {
	run.Runner
	gone int
	dead atomic.Bool
}

func (d *dying) Query(ctx context.Context, c run.Command) ([]byte, error) {
	if d.dead.Load() {
		return nil, errCrash
	}
	return d.Runner.Query(ctx, c)
}

func (d *dying) Change(c run.Command) ([]byte, error) {
	if d.dead.Load() {
		return nil, errCrash
	}
	if removed(c) < 2 {
		return d.Runner.Change(c)
	}
	d.dead.Store(true)
	c.Args = c.Args[:len(c.Args)-removed(c)+d.gone]
	if d.gone > 0 {
		if _, err := d.Runner.Change(c); err != nil {
			return nil, err
		}
	}
	return nil, errCrash
}

// removed returns how many logical volumes a command removes.
func removed(c run.Command) int {
	if c.Operation != "lvremove" {
		return 0
	}
	return len(c.Args) - 2 - slices.Index(c.Args, "--select")
}

func TestAProcessMayEndInTheMiddleOfSeveralRemovals(t *testing.T) {
	const n = 4
	for _, pool := range []provision.PoolRef{vg, thin} {
		for gone := range n {
			t.Run(fmt.Sprintf("%s with %d of %d gone", pool.Type, gone, n-1), func(t *testing.T) {
				host, p, g, _ := removing(t)
				ids := carveSome(t, p, pool, n)
				g.Runner = &dying{Runner: g.Runner, gone: gone}
				if failed := g.removeAtOnce(t, p, ids...); len(failed) != n-1 {
					t.Errorf("failed: %v", failed)
				}
				_, c := counted(host)
				again, _ := start(t, c)
				if left := poolOf(t, again, pool); len(left.Volumes) != n-1-gone {
					t.Errorf("left is %+v", left)
				}
				for _, id := range ids {
					if err := again.Delete(t.Context(), id); err != nil {
						t.Error(err)
					}
				}
				if left := poolOf(t, again, pool); len(left.Volumes) > 0 || left.Free != left.Total-left.Foreign {
					t.Errorf("left at the end is %+v", left)
				}
			})
		}
	}
}

func TestACallerThatGivesUpWhileAnotherHasTheVolumeRemovesNothing(t *testing.T) {
	_, p, g, _ := removing(t)
	ids := carveSome(t, p, vg, 1)
	first := removeSoon(t.Context(), p, ids[0])
	<-g.begun
	gaveUp, giveUp := context.WithCancel(t.Context())
	giveUp()
	if err := p.Delete(gaveUp, ids[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("the second caller got %v", err)
	}
	close(g.open)
	if err := <-first.ended; err != nil {
		t.Error(err)
	}
}
