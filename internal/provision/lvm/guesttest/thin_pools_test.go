//go:build platform

package guesttest

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/kernel"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

func TestProcessesPerOperationInARealThinPool(t *testing.T) {
	lvmtest.RealBudget(t, thinPool(t, 256))
}

// realThin starts a provisioner over such a pool.
func realThin(t *testing.T, size int64, options ...string) (*lvm.Provisioner, provision.PoolRef) {
	t.Helper()
	pool := thinPool(t, size, options...)
	c, _, _ := lvmtest.RealConfig(t)
	p, _ := lvmtest.Start(t, c)
	return p, pool
}

func TestAThinPoolThatFillsUpComesBackOnRealLVM(t *testing.T) {
	p, pool := realThin(t, 64)
	works := func(p provision.Pool) bool { return p.Problem == "" }
	full := func(p provision.Pool) bool {
		return strings.Contains(p.Problem, "out of space") && p.Fill.Data == p.Total
	}
	for round, back := range []func(){
		func() {
			if err := p.Delete(t.Context(), "pvc-2"); err != nil {
				t.Errorf("deleting from a full pool: %v", err)
			}
		},
		func() { lvmtest.LVM(t, "lvextend", "--yes", "--size", "128M", pool.Name) },
	} {
		old := made(t, p, request(pool, "pvc-1", 128))
		v := made(t, p, request(pool, "pvc-2", 128))
		if round == 0 {
			if err := overwrite(old.Content.Source, 40*mib); err != nil {
				t.Fatal(err)
			}
			eventually(t, p, pool, func(p provision.Pool) bool {
				return p.Fill.Data == 40*mib && p.Fill.Metadata > 0 && p.Fill.Metadata < 30
			}, "what was written is not seen in the fill")
		}
		if err := overwrite(v.Content.Source, 40*mib); err == nil {
			t.Fatal("more was written than the pool holds")
		}
		eventually(t, p, pool, full, "a pool that is full is not reported")
		if _, err := p.Create(t.Context(), request(pool, "pvc-3", 4)); !errors.Is(err, provision.ErrNoSpace) {
			t.Errorf("creating in a full pool: %v", err)
		}
		if got, err := p.Get(t.Context(), "pvc-1"); err != nil || got.Problem != "" {
			t.Errorf("a volume of a full pool: %+v, %v", got, err)
		}
		back()
		eventually(t, p, pool, works, "the pool did not come back")
	}
	if v, err := p.Create(t.Context(), request(pool, "pvc-3", 4)); err != nil || v.Size != 4*mib {
		t.Errorf("creating when there is room again: %+v, %v", v, err)
	}
}

// leak writes a little into each block of a volume, and says whether bytes that overwrite
// wrote can be read from the rest.
func leak(t *testing.T, device string, size int64) bool {
	t.Helper()
	const block, little = 64 << 10, 4 << 10
	f, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	for at := int64(0); at < size*mib; at += block {
		if _, err := f.WriteAt(bytes.Repeat([]byte{1}, little), at); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return strings.Contains(blockdevtest.ReadAt(t, device, int(size*mib), 0), "\xa5")
}

func TestANewThinVolumeNeverShowsDataOfADeletedOneOnRealLVM(t *testing.T) {
	p, pool := realThin(t, 16) // so small that blocks are used again
	for round := range conformance.Rounds(t) {
		v := made(t, p, request(pool, "pvc-1", 12))
		if leak(t, v.Content.Source, 12) {
			t.Fatalf("round %d: a new volume shows what a deleted one held", round)
		}
		if err := overwrite(v.Content.Source, 12*mib); err != nil {
			t.Fatal(err)
		}
		if err := p.Delete(t.Context(), v.ID); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAPoolThatDoesNotZeroIsClosedUntilItDoesOnRealLVM(t *testing.T) {
	p, pool := realThin(t, 16, "--zero", "n")
	_, err := p.Create(t.Context(), request(pool, "pvc-1", 12))
	if !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "lvchange --zero y "+pool.Name) {
		t.Errorf("creating: %v", err)
	}
	// Old bytes can be read there, so the test of deleted volumes would see them.
	lvmtest.RealForeignThin(t, pool.Name, "theirs", 12*mib)
	if err := overwrite("/dev/vg-berth/theirs", 12*mib); err != nil {
		t.Fatal(err)
	}
	lvmtest.LVM(t, "lvremove", "--yes", "vg-berth/theirs")
	lvmtest.RealForeignThin(t, pool.Name, "theirs", 12*mib)
	if !leak(t, "/dev/vg-berth/theirs", 12) {
		t.Error("the pool does not zero and yet shows nothing old: the test of zeroing proves nothing")
	}
	lvmtest.LVM(t, "lvchange", "--zero", "y", pool.Name)
	eventually(t, p, pool, func(p provision.Pool) bool { return p.Problem == "" }, "zeroing was not noticed")
	made(t, p, request(pool, "pvc-1", 12))
}

func TestThinVolumesAndTheirPoolAreActivatedAfterARebootOnRealLVM(t *testing.T) {
	pool := thinPool(t, 64)
	c, _, _ := lvmtest.RealConfig(t)
	p, stop := lvmtest.Start(t, c)
	v := made(t, p, request(pool, "pvc-1", 8))
	stop()
	lvmtest.LVM(t, "vgchange", "--activate", "n", "vg-berth")
	p, stop = lvmtest.Start(t, c)
	if got, err := p.Get(t.Context(), v.ID); err != nil || got != v || (kernel.Devices{}).Leads(v.Content.Source, v.Content.Identity) != nil {
		t.Errorf("after the reboot: %+v, %v; want %+v", got, err, v)
	}
	p.Wait()
	// The pool is active by itself: it stays active when its last volume is deleted.
	if err := p.Delete(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	if kind, _, err := (kernel.Devices{}).Target("vg--berth-pool-tpool"); kind != "thin-pool" || err != nil {
		t.Errorf("the pool is %q, %v", kind, err)
	}
	stop()
	// A pool without volumes is activated, too, when a volume is to be made.
	lvmtest.LVM(t, "vgchange", "--activate", "n", "vg-berth")
	p, _ = lvmtest.Start(t, c)
	made(t, p, request(pool, "pvc-2", 8))
	eventually(t, p, pool, func(p provision.Pool) bool { return p.Fill.Metadata > 0 }, "the fill of the pool is not known")
}

func TestSnapshotsOfOthersOutliveAThinVolumeOrKeepItOnRealLVM(t *testing.T) {
	p, pool := realThin(t, 64)
	v := made(t, p, request(pool, "pvc-1", 8))
	lvmtest.LVM(t, "lvcreate", "--yes", "--snapshot", "--name", "thinly", "vg-berth/pvc-1")
	lvmtest.LVM(t, "lvcreate", "--yes", "--snapshot", "--size", "4M", "--name", "cow", "vg-berth/pvc-1")
	eventually(t, p, pool, func(p provision.Pool) bool { return p.Foreign == 8*mib && len(p.Volumes) == 1 }, "the snapshots were not noticed")
	if err := p.Delete(t.Context(), v.ID); !errors.Is(err, provision.ErrInUse) || !strings.Contains(err.Error(), "cow") {
		t.Errorf("deleting the origin of a snapshot that needs it: %v", err)
	}
	lvmtest.LVM(t, "lvremove", "--yes", "vg-berth/cow")
	if err := p.Delete(t.Context(), v.ID); err != nil {
		t.Errorf("deleting the origin of a thin snapshot: %v", err)
	}
	eventually(t, p, pool, func(p provision.Pool) bool { return p.Foreign == 8*mib && len(p.Volumes) == 0 }, "the thin snapshot is gone")
}
