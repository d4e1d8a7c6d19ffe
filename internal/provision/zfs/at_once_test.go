package zfs_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

// meeting holds commands of an operation until so many of them are under way.
func meeting(t *testing.T, operation string, many int32) func(run.Command, func() ([]byte, error)) ([]byte, error) {
	var came atomic.Int32
	all := make(chan struct{})
	return only(operation, func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
		if came.Add(1) == many {
			close(all)
		}
		select {
		case <-all:
		case <-time.After(time.Minute):
			t.Errorf("%d of %d came", came.Load(), many)
		}
		return do()
	})
}

// eight runs f eight times at once, and returns what each returned.
func eight(f func(n int) error) []error {
	errs := make([]error, 8)
	var all sync.WaitGroup
	for n := range errs {
		all.Go(func() { errs[n] = f(n) })
	}
	all.Wait()
	return errs
}

func TestVolumesOfAZpoolAreMadeAtTheSameTime(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-first", 1)
	h.Around = meeting(t, "zfs create", 8)
	errs := eight(func(n int) error {
		_, err := p.Create(t.Context(), request(fmt.Sprint("pvc-", n), 1))
		return err
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if pool := reported(t, p); len(pool.Volumes) != 9 || pool.Total-pool.Free != 9*unit {
		t.Errorf("reported %+v", pool)
	}
}

// Requests at the same time are admitted one after the other: a volume that is being made
// has its room.
func TestNoMoreIsMadeAtTheSameTimeThanThereIsRoomFor(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-first", 1)
	share := reported(t, p).Free / unit / 5 // five fit, or nearly
	var tried atomic.Int32
	meet := meeting(t, "zfs create", 5)
	h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
		if c.Operation == "zfs create" {
			tried.Add(1)
		}
		return meet(c, do)
	}
	errs := eight(func(n int) error {
		_, err := p.Create(t.Context(), request(fmt.Sprint("pvc-", n), share))
		return err
	})
	made := 0
	for _, err := range errs {
		switch {
		case err == nil:
			made++
		case !errors.Is(err, provision.ErrNoSpace):
			t.Error(err)
		}
	}
	if made != 5 || tried.Load() != 5 {
		t.Errorf("%d were made and %d tried, want 5", made, tried.Load())
	}
}

func TestAReportDoesNotWaitForAChange(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 1)
	entered, leave := make(chan struct{}), make(chan struct{})
	h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
		switch {
		case c.Args[0] == "create":
			close(entered)
			<-leave
		case c.Args[len(c.Args)-1] == "tank":
			t.Error("it was read while it changed: nobody could tell what the answer is of")
		}
		return do()
	}
	var all sync.WaitGroup
	all.Go(func() {
		if _, err := p.Create(t.Context(), request("pvc-2", 1)); err != nil {
			t.Error(err)
		}
	})
	<-entered
	if pool := reported(t, p); len(pool.Volumes) != 1 || pool.Free != pool.Total-unit {
		t.Errorf("meanwhile %+v", pool)
	}
	close(leave)
	all.Wait()
}

func TestAVolumeStaysWhileACopyOfItIsMade(t *testing.T) {
	for name, from := range map[string]provision.Source{"a copy of a snapshot": {Snapshot: "snap-1"}, "a copy of the volume": {Volume: "pvc-1"}} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			p, _ := start(t, config(h))
			create(t, p, "pvc-1", 2)
			snap(t, p, "snap-1", "pvc-1")
			p.Wait()
			entered, deleted := make(chan struct{}), make(chan error, 1)
			var order []string
			var mu sync.Mutex
			h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
				if c.Args[0] == "clone" {
					close(entered)
					select {
					case err := <-deleted:
						t.Errorf("it was deleted meanwhile: %v", err)
					case <-time.After(10 * time.Millisecond): // enough to be seen to be wrong
					}
				}
				mu.Lock()
				order = append(order, c.Args[0])
				mu.Unlock()
				return do()
			}
			go func() { <-entered; deleted <- p.Delete(t.Context(), "pvc-1") }()
			r := request("pvc-2", 2)
			r.Source = from
			made(t, p, r)
			if err := <-deleted; err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if slices.Index(order, "clone") > slices.Index(order, "rename") {
				t.Errorf("commands came as %v", order)
			}
		})
	}
}

// A volume may be made again of a snapshot that outlived it.
func TestAVolumeIsMadeOnceOfASnapshotOfItself(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	create(t, p, "pvc-1", 1)
	snap(t, p, "snap-1", "pvc-1")
	if err := p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	var clones atomic.Int32
	h.Around = only("zfs clone", func(_ run.Command, do func() ([]byte, error)) ([]byte, error) {
		clones.Add(1)
		return do()
	})
	r := request("pvc-1", 1)
	r.Source.Snapshot = "snap-1"
	errs := eight(func(int) error { _, err := p.Create(t.Context(), r); return err })
	if err := errors.Join(errs...); err != nil || clones.Load() != 1 {
		t.Errorf("%d clones were made, %v", clones.Load(), err)
	}
}

// While a caller waits to delete a snapshot, it may be deleted, and a snapshot of another volume
// may be taken under its name.
func TestAVolumeStaysWhereItIsWhileASnapshotIsDeletedThatBecameItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		p := fresh(t, h)
		create(t, p, "pvc-1", 1)
		create(t, p, "pvc-2", 1)
		snap(t, p, "snap-1", "pvc-1")
		p.Wait()
		holds := []chan struct{}{make(chan struct{}), make(chan struct{})}
		deletions := 0
		h.Around = func(c run.Command, do func() ([]byte, error)) ([]byte, error) {
			out, err := do()
			if c.Args[0] == "destroy" && strings.HasSuffix(c.Args[len(c.Args)-1], "@snap-1") {
				deletions++
				<-holds[deletions-1]
			}
			return out, err
		}
		var errs []chan error
		begin := func(f func() error) {
			ended := make(chan error, 1)
			go func() { ended <- f() }()
			errs = append(errs, ended)
			synctest.Wait()
		}
		begin(func() error { return p.DeleteSnapshot(t.Context(), "snap-1") })
		begin(func() error { return p.DeleteSnapshot(t.Context(), "snap-1") })
		begin(func() error {
			_, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-2"})
			return err
		})
		close(holds[0])
		synctest.Wait()
		begin(func() error { return p.Delete(t.Context(), "pvc-2") })
		close(holds[1])
		for n, ended := range errs {
			if err := <-ended; err != nil {
				t.Errorf("caller %d: %v", n+1, err)
			}
		}
		if deletions != 2 {
			t.Errorf("%d snapshots were deleted", deletions)
		}
		p.Wait()
		if pool := reported(t, p); len(pool.Volumes) != 1 || len(pool.Snapshots) != 0 {
			t.Errorf("left is %+v", pool)
		}
	})
}

// Whatever is asked for at the same time, the known facts are those that a new process reads,
// and nothing is left over.
func TestAfterConcurrentCallsTheKnownFactsAreTrue(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := newHost()
			p := fresh(t, h)
			var all sync.WaitGroup
			for n := range uint64(6) {
				all.Go(func() { wander(t, p, rand.New(rand.NewPCG(seed, n))) })
			}
			all.Wait()
			p.Wait()
			if diff := cmp.Diff(seen(t, fresh(t, h)), seen(t, p)); diff != "" {
				t.Errorf("a new process sees (-) and this one knows (+):\n%s", diff)
			}
			cleared(t, h, p)
		})
	}
}

// wander makes random requests for a few volumes. Other callers make many of them impossible.
// Those are refused, and only for a reason that the caller can act on.
func wander(t *testing.T, p *zfs.Provisioner, random *rand.Rand) {
	id := func() string { return fmt.Sprint("pvc-", random.IntN(4)) }
	snapshot := func() string { return fmt.Sprint("snap-", random.IntN(3)) }
	for range 30 {
		var err error
		switch random.IntN(8) {
		case 0, 1:
			_, err = p.Create(t.Context(), request(id(), 2))
		case 2:
			r := request(id(), 2)
			r.Source.Volume = id()
			_, err = p.Create(t.Context(), r)
		case 3:
			r := request(id(), 3)
			r.Source.Snapshot = snapshot()
			_, err = p.Create(t.Context(), r)
		case 4:
			_, err = p.Snapshot(t.Context(), provision.SnapshotRequest{ID: snapshot(), Volume: id()})
		case 5:
			err = p.DeleteSnapshot(t.Context(), snapshot())
		case 6:
			err = p.Delete(t.Context(), id())
		case 7:
			_, err = p.Expand(t.Context(), provision.ExpandRequest{ID: id(), Size: 4 * unit})
		}
		if err != nil && !errors.Is(err, provision.ErrConflict) && !errors.Is(err, provision.ErrNotFound) && !errors.Is(err, provision.ErrInvalid) {
			t.Error(err)
		}
	}
}

// cleared checks that nothing is left when all volumes and snapshots are deleted.
func cleared(t *testing.T, h *zfstest.Host, p *zfs.Provisioner) {
	t.Helper()
	pool := reported(t, p)
	for _, s := range pool.Snapshots {
		if err := p.DeleteSnapshot(t.Context(), s.ID); err != nil {
			t.Error(err)
		}
	}
	for _, v := range pool.Volumes {
		if err := p.Delete(t.Context(), v.ID); err != nil {
			t.Error(err)
		}
	}
	p.Wait()
	for _, name := range datasets(h) {
		if !slices.Contains([]string{"other", "tank", "tank/berth", "tank/berth/berth-trash", "tank/berth/berth-volumes"}, name) {
			t.Errorf("left: %s", name)
		}
	}
}
