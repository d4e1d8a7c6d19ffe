package zfs_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

func TestAMountedDatasetIsNotDeleted(t *testing.T) {
	for name, snapshot := range map[string]bool{"without a snapshot": false, "with a snapshot": true} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			p, _ := start(t, config(h))
			v := made(t, p, dataset("pvc-1", 8))
			if snapshot {
				if _, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: v.ID}); err != nil {
					t.Fatal(err)
				}
			}
			h.On(v.Content.Source, func(d *zfstest.Dataset) { d.Mounted = true })
			if err := p.Delete(t.Context(), v.ID); !errors.Is(err, provision.ErrInUse) {
				t.Errorf("while it is mounted: %v", err)
			}
			if got, err := p.Get(t.Context(), v.ID); err != nil || got != v {
				t.Errorf("it is %+v, %v", got, err)
			}
			h.On(v.Content.Source, func(d *zfstest.Dataset) { d.Mounted = false })
			if err := p.Delete(t.Context(), v.ID); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestADatasetGrowsWhileItIsMounted(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	v := made(t, p, dataset("pvc-1", 8))
	h.On(v.Content.Source, func(d *zfstest.Dataset) { d.Mounted = true })
	got, err := p.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: 9 * unit})
	if err != nil || got.Size != 9*unit {
		t.Errorf("%+v, %v", got, err)
	}
	h.On(v.Content.Source, func(d *zfstest.Dataset) {
		if d.Refquota != 9*unit || d.Refreservation != 9*unit {
			t.Errorf("quota %d, reservation %d", d.Refquota, d.Refreservation)
		}
	})
}

// A command that sets quota and reservation may set the one and fail at the other.
func TestAGrowthThatFailedHalfwayIsTakenBack(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	v := made(t, p, dataset("pvc-1", 8))
	h.Edit(func(zpools map[string]*zfstest.Zpool) { // others are as fast
		zpools["tank"].Datasets["tank/theirs"] = &zfstest.Dataset{Props: map[string]string{}, Data: 900 << 20}
	})
	if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: 100 * unit}); !errors.Is(err, provision.ErrNoSpace) {
		t.Errorf("growing into what others took: %v", err)
	}
	p.Wait()
	if got, err := p.Get(t.Context(), v.ID); err != nil || got != v {
		t.Errorf("it is %+v, %v", got, err)
	}
	h.On(v.Content.Source, func(d *zfstest.Dataset) {
		if d.Refquota != 8*unit || d.Refreservation != 8*unit {
			t.Errorf("quota %d, reservation %d", d.Refquota, d.Refreservation)
		}
	})
}

func TestTheSizeOfADatasetIsTheLowerOfItsQuotaAndReservation(t *testing.T) {
	for name, tc := range map[string]struct{ quota, reservation, want int64 }{
		"an equal quota and reservation": {8 * unit, 8 * unit, 8 * unit},
		"a growing dataset":              {9 * unit, 8 * unit, 8 * unit},
		"a quota without a reservation":  {8 * unit, 0, 8 * unit},
		"a reservation without a quota":  {0, 8 * unit, 8 * unit},
		"a reservation above the quota":  {8 * unit, 9 * unit, 8 * unit},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost()
			p, _ := start(t, config(h))
			v := made(t, p, dataset("pvc-1", 4))
			h.On(v.Content.Source, func(d *zfstest.Dataset) { d.Refquota, d.Refreservation = tc.quota, tc.reservation })
			if got, err := fresh(t, h).Get(t.Context(), v.ID); err != nil || got.Size != tc.want {
				t.Errorf("%+v, %v, want %d bytes", got, err, tc.want)
			}
		})
	}
}

func TestDatasetsCostNoMoreProcessesThanTheyMust(t *testing.T) {
	h := newHost()
	h.PutFilesystem(parent+"/berth-volumes", hidden)
	counter, c := counted(h)
	now := time.Now()
	c.Now = func() time.Time { return now }
	tidy := later(t, &c)
	p, _ := start(t, c)
	awaitChange(t, p)
	if _, err := p.Report(t.Context()); err != nil {
		t.Fatal(err)
	}
	counter.Take()
	copied := func(id string, from provision.Source) func(context.Context) error {
		return func(ctx context.Context) error {
			r := dataset(id, 8)
			r.Source = from
			_, err := p.Create(ctx, r)
			return err
		}
	}
	for _, step := range []struct {
		name string
		do   func(context.Context) error
		want map[string]int
	}{
		{"create", copied("pvc-1", provision.Source{}), map[string]int{"zfs create": 1}},
		{"record the use", func(ctx context.Context) error {
			_, err := p.Format(ctx, provision.FormatRequest{ID: "pvc-1", Filesystem: provision.Dataset})
			return err
		}, map[string]int{"zfs set": 1}},
		{"get", func(ctx context.Context) error { _, err := p.Get(ctx, "pvc-1"); return err }, nil},
		{"expand", func(ctx context.Context) error {
			_, err := p.Expand(ctx, provision.ExpandRequest{ID: "pvc-1", Size: 8 * unit})
			return err
		}, nil},
		{"clone", copied("pvc-2", provision.Source{Volume: "pvc-1"}),
			map[string]int{"zfs snapshot": 1, "zfs clone": 1}},
		{"tidy", func(context.Context) error { tidy(p); return nil }, map[string]int{"zfs list": 1, "zfs destroy": 1}},
		{"delete", func(ctx context.Context) error { return p.Delete(ctx, "pvc-2") }, map[string]int{"zfs list": 1, "zfs destroy": 1}},
	} {
		if err := step.do(t.Context()); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := counter.Take(); !cmp.Equal(got, step.want, cmpopts.EquateEmpty()) {
			t.Errorf("%s started %v, want %v", step.name, got, step.want)
		}
	}
}

func TestADatasetThatCameBackIsFoundBeforeItIsDeclaredMissing(t *testing.T) {
	h := newHost()
	c := config(h)
	var now atomic.Int64
	c.Now = func() time.Time { return time.Unix(1e9+now.Load(), 0) }
	p, _ := start(t, c)
	made(t, p, dataset("pvc-1", 8))
	h.PutFilesystem(volumes+"pvc-2", map[string]string{"berth.dev:volume": "pvc-2"})
	now.Add(60)
	if v, err := p.Get(t.Context(), "pvc-2"); err != nil || v.ID != "pvc-2" {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestADeletedDatasetIsRolledBackOnce(t *testing.T) {
	h := newHost()
	p, _ := start(t, config(h))
	v := made(t, p, dataset("pvc-1", 8))
	if _, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: v.ID}); err != nil {
		t.Fatal(err)
	}
	h.On(v.Content.Source, func(d *zfstest.Dataset) { d.Written = true })
	if err := p.Delete(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	p.Wait()
	h.On(parent+"/berth-trash/pvc-1.1", func(d *zfstest.Dataset) {
		if d.Written {
			t.Error("it holds what no snapshot does")
		}
	})
	counter, c := counted(h)
	again, _ := start(t, c) // it sees only data that ZFS itself wrote
	made(t, again, dataset("pvc-2", 8))
	again.Wait()
	if n := counter.Take()["zfs rollback"]; n != 0 {
		t.Errorf("rolled back %d times more", n)
	}
}
