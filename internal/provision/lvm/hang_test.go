package lvm_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

var other = provision.PoolRef{Type: "LVM", Name: "other"}

func inOther(id string) provision.CreateRequest {
	return provision.CreateRequest{ID: id, Pool: other, Size: unit}
}

// mentions says whether a command names a volume group.
func mentions(c run.Command, group string) bool {
	return slices.ContainsFunc(c.Args, func(a string) bool { return a == group || strings.HasPrefix(a, group+"/") })
}

func TestGroupWhoseChangeHangsHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100, other.Name: 100})
		_, c := counted(host)
		release, begun := make(chan struct{}), make(chan struct{})
		host.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			if c.Operation == "lvcreate" && mentions(c, vg.Name) {
				close(begun)
				<-release
			}
			return do()
		}
		p, _ := start(t, c)
		ctx, cancel := context.WithCancel(t.Context())
		var caller sync.WaitGroup
		caller.Go(func() {
			if _, err := p.Create(ctx, request("pvc-1", 1)); !errors.Is(err, context.Canceled) {
				t.Errorf("the caller that gave up: %v", err)
			}
		})
		<-begun
		cancel()
		caller.Wait()

		if _, err := p.Create(t.Context(), inOther("pvc-2")); err != nil {
			t.Errorf("creating in another group: %v", err)
		}
		short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if _, err := p.Create(short, request("pvc-3", 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("creating in the same group: %v, want its own context's error", err)
		}
		if err := p.Healthy(); err != nil {
			t.Errorf("a change that has just begun is no trouble: %v", err)
		}
		<-time.After(3 * time.Minute) // on the clock of the bubble
		if pools, err := p.Report(t.Context()); err != nil || pools[0].Problem != "" || !strings.Contains(pools[1].Problem, "3m0s") {
			t.Errorf("reported %+v, %v; want trouble with %s alone", pools, err, vg.Name)
		}
		if err := p.Healthy(); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("health: %v", err)
		}
		close(release)
		// The volume is known a moment before the group is given back.
		synctest.Wait()
		if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Size != unit {
			t.Errorf("the change was not finished: %+v, %v", v, err)
		}
		if _, err := p.Get(t.Context(), "pvc-3"); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("what its caller left in the queue was done: %v", err)
		}
		if err := p.Healthy(); err != nil {
			t.Errorf("healthy again: %v", err)
		}
	})
}

func TestGroupThatDoesNotAnswerIsReportedAndTheOthersStayKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100, other.Name: 100})
		_, c := counted(host)
		release := make(chan struct{})
		host.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			if c.Operation == "fullreport" && !mentions(c, other.Name) {
				select {
				case <-release:
				case <-t.Context().Done():
				}
			}
			return do()
		}
		p, _ := start(t, c)
		pools, err := p.Report(t.Context())
		if err != nil || len(pools) != 2 || pools[0].Problem != "" || pools[0].Total != 100*unit || !strings.Contains(pools[1].Problem, "does not answer") {
			t.Fatalf("reported %+v, %v", pools, err)
		}
		if _, err := p.Create(t.Context(), inOther("pvc-1")); err != nil {
			t.Errorf("creating in the group that answers: %v", err)
		}
		if _, err := p.Create(t.Context(), request("pvc-2", 1)); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("creating in the one that does not: %v", err)
		}
		// It may be in the group that was never read: claiming that it is gone would
		// lose track of it.
		if err := p.Delete(t.Context(), "pvc-3"); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("deleting what may be in the silent group: %v", err)
		}
		if err := p.Healthy(); !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("health: %v", err)
		}
		close(release)
		eventually(t, func() bool {
			pools, err := p.Report(t.Context())
			return err == nil && pools[1].Problem == "" && pools[1].Total == 100*unit && p.Healthy() == nil
		}, "the group was not asked again")
	})
}

func TestReportOlderThanAnOwnChangeDoesNotHideIt(t *testing.T) {
	host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
	_, c := counted(host)
	p, _ := start(t, c)
	if _, err := p.Report(t.Context()); err != nil {
		t.Fatal(err)
	}
	read, deliver := make(chan struct{}), make(chan struct{})
	var once sync.Once
	host.Around = only("fullreport", func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
		out, err := do()
		once.Do(func() { close(read); <-deliver })
		return out, err
	})
	var reader sync.WaitGroup
	reader.Go(func() {
		// The volume is not known: LVM is asked for everything, and answers late.
		if _, err := p.Get(t.Context(), "pvc-missing"); !errors.Is(err, provision.ErrNotFound) {
			t.Error(err)
		}
	})
	<-read
	if _, err := p.Create(t.Context(), request("pvc-1", 1)); err != nil {
		t.Fatal(err)
	}
	close(deliver)
	reader.Wait()
	if pools, err := p.Report(t.Context()); err != nil || len(pools[0].Volumes) != 1 || pools[0].Free != 99*unit {
		t.Errorf("the old report hid the new volume: %+v, %v", pools, err)
	}
}

// stubborn is a runner whose queries go on after their contexts end, like queries that wait for
// a disk that does not answer.
type stubborn struct {
	run.Runner
	mu      sync.Mutex
	begun   int
	release chan struct{}
}

func (s *stubborn) Query(ctx context.Context, c run.Command) ([]byte, error) {
	s.mu.Lock()
	release := s.release
	if release != nil {
		s.begun++
	}
	s.mu.Unlock()
	if release != nil {
		<-release
		return nil, ctx.Err()
	}
	return s.Runner.Query(ctx, c)
}

// hang lets queries hang until they are released.
func (s *stubborn) hang() (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := make(chan struct{})
	s.release = held
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.release = nil
		close(held)
	})
}

func TestAQueryThatCannotBeEndedIsLeftBehindAndNoOtherIsSentAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := lvmtest.NewHost(map[string]int64{vg.Name: 100})
		_, c := counted(host)
		s := &stubborn{Runner: c.Runner}
		c.Runner = s
		p, _ := start(t, c)
		if _, err := p.Create(t.Context(), request("pvc-1", 1)); err != nil {
			t.Fatal(err)
		}
		release := s.hang()
		t.Cleanup(release)
		host.PutForeign(vg.Name, "theirs", unit)
		eventually(t, func() bool {
			pools, err := p.Report(t.Context())
			return err == nil && len(pools) == 1 && strings.Contains(pools[0].Problem, "does not answer")
		}, "the trouble is not reported")
		// Get looks for an unknown volume in every group, so every group is asked for again.
		for range 3 {
			if _, err := p.Get(t.Context(), "pvc-2"); err == nil {
				t.Error("found what is not there")
			}
			pools, err := p.Report(t.Context())
			if err != nil || len(pools) != 1 || pools[0].Total != 100*unit || len(pools[0].Volumes) != 1 {
				t.Errorf("reported %+v, %v; want what was known", pools, err)
			}
		}
		if s.mu.Lock(); s.begun != 1 {
			t.Errorf("%d queries wait for the disk, want one", s.begun)
		}
		s.mu.Unlock()
		release()
		eventually(t, func() bool {
			pools, err := p.Report(t.Context())
			return err == nil && pools[0].Problem == "" && pools[0].Foreign == unit
		}, "LVM was not asked again")
	})
}
