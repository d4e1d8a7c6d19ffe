package pools

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/provision"
)

// reporter answers with one pool, whose name is the number of the report.
type reporter struct {
	changed chan struct{}
	hang    bool
	some    bool // it fails, and some pools are known

	mu      sync.Mutex
	reports int
	err     error
}

func (r *reporter) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.err = err
}

func (r *reporter) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reports
}

func (r *reporter) Changed() <-chan struct{} { return r.changed }

func (r *reporter) Report(ctx context.Context) ([]provision.Pool, error) {
	if r.hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports++
	if r.err != nil && !r.some {
		return nil, r.err
	}
	return []provision.Pool{{Total: int64(r.reports)}}, r.err
}

// observe starts an observer in a bubble of time.
func observe(t *testing.T, r *reporter) *Observer {
	t.Helper()
	r.changed = make(chan struct{}, 1)
	o := NewObserver(r, clock.RealClock{}, logr.Discard())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = o.Start(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return o
}

// pass lets time go by in the bubble.
func pass(d time.Duration) { <-time.After(d) }

func TestAChangeIsReportedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reporter{}
		o := observe(t, r)
		<-o.Reported()
		synctest.Wait()
		signals, done := o.Subscribe()
		defer done()
		start := time.Now()
		r.changed <- struct{}{}
		<-signals
		if time.Since(start) != 0 || o.Latest().Pools[0].Total != 2 {
			t.Errorf("after %s: %+v", time.Since(start), o.Latest())
		}
	})
}

func TestADoubtIsClearedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reporter{}
		o := observe(t, r)
		synctest.Wait()
		r.fail(provision.ErrUnavailable)
		o.ToolFailed()
		synctest.Wait()
		if o.Latest().Err == nil {
			t.Error("the failure is not seen")
		}
	})
}

func TestNothingIsKnownBeforeTheFirstReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := observe(t, &reporter{err: provision.ErrUnavailable})
		synctest.Wait()
		select {
		case <-o.Reported():
			t.Error("a failed report counts")
		default:
		}
		if !errors.Is(o.Latest().Err, provision.ErrUnavailable) {
			t.Errorf("snapshot %+v", o.Latest())
		}
	})
}

func TestAFailedReportKeepsTheLastPoolsAndIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reporter{}
		o := observe(t, r)
		synctest.Wait()
		r.fail(provision.ErrUnavailable)
		r.changed <- struct{}{}
		synctest.Wait()
		if s := o.Latest(); s.Err == nil || len(s.Pools) != 1 {
			t.Errorf("snapshot %+v", s)
		}
		r.fail(nil)
		before := r.count()
		pass(retry)
		synctest.Wait()
		if s := o.Latest(); s.Err != nil || r.count() != before+1 {
			t.Errorf("snapshot %+v after %d reports", s, r.count()-before)
		}
	})
}

func TestAReportThatLacksPoolsCountsForTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reporter{some: true, err: provision.ErrUnavailable}
		o := observe(t, r)
		<-o.Reported()
		synctest.Wait()
		if s := o.Latest(); s.Err != nil || !errors.Is(s.Silent, provision.ErrUnavailable) || len(s.Pools) != 1 {
			t.Errorf("snapshot %+v", s)
		}
		r.fail(nil)
		r.changed <- struct{}{}
		synctest.Wait()
		if s := o.Latest(); s.Err != nil || s.Silent != nil {
			t.Errorf("once all answer: %+v", s)
		}
	})
}

func TestAPoolIsNamedAndSaidToBeReadIfItWas(t *testing.T) {
	o := NewObserver(&reporter{}, clock.RealClock{}, logr.Discard())
	sound := provision.Pool{PoolRef: provision.PoolRef{Name: "vg0"}, Total: 1}
	silent := provision.Pool{PoolRef: provision.PoolRef{Name: "vg1"}, Problem: "it does not answer"}
	for _, reported := range []bool{false, true} {
		for name, read := range map[string]bool{"vg0": reported, "vg1": false, "vg2": false} {
			if p, got := o.Named(name); p.Name != name || got != read {
				t.Errorf("pool %+v, read: %t; want %t", p, got, read)
			}
		}
		o.store([]provision.Pool{sound, silent}, nil)
	}
}

func TestAHangingReportBecomesAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := observe(t, &reporter{hang: true})
		pass(patience)
		synctest.Wait()
		if !errors.Is(o.Latest().Err, context.DeadlineExceeded) {
			t.Errorf("snapshot %+v", o.Latest())
		}
	})
}

func TestTheProvisionerIsAskedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &reporter{}
		observe(t, r)
		pass(10*probe + time.Second)
		synctest.Wait()
		if r.count() != 11 {
			t.Errorf("%d reports; want 11", r.count())
		}
	})
}

func TestASubscriberThatUnsubscribedIsNotSignalled(t *testing.T) {
	o := NewObserver(&reporter{}, clock.RealClock{}, logr.Discard())
	first, done := o.Subscribe()
	second, _ := o.Subscribe()
	done()
	o.store(nil, nil)
	if len(first) != 0 || len(second) != 1 {
		t.Errorf("signals %d and %d; want 0 and 1", len(first), len(second))
	}
}

// holding reports one pool with a volume.
type holding struct{ changed chan struct{} }

func (h *holding) Changed() <-chan struct{} { return h.changed }

func (*holding) Report(context.Context) ([]provision.Pool, error) {
	return []provision.Pool{{Volumes: []provision.Volume{{ID: "a"}}}}, nil
}

func TestADeletedVolumeIsGoneUntilTheNextReportAndItsRoomIsNotFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &holding{changed: make(chan struct{}, 1)}
		o := NewObserver(h, clock.RealClock{}, logr.Discard())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = o.Start(ctx) }()
		synctest.Wait()
		o.Deleted("a")
		if !o.Gone("a") || o.Gone("b") {
			t.Errorf("gone: a %t, b %t", o.Gone("a"), o.Gone("b"))
		}
		if p := o.Latest().Pools[0]; len(p.Volumes) != 1 {
			t.Errorf("the room of what was deleted counts as free before the report that says so: %+v", p)
		}
		h.changed <- struct{}{}
		synctest.Wait()
		if o.Gone("a") {
			t.Error("what a report shows is gone")
		}
	})
}
