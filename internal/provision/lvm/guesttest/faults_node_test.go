//go:build platform

package guesttest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/blockdev/faultydisk"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

const (
	// metadata is how many bytes LVM keeps for itself at the beginning of a physical volume.
	metadata = mib
	// patience is how long an operation on a disk that fails may take at most.
	patience = 90 * time.Second
	secret   = "what somebody wrote"
)

// hasty returns the configuration of a provisioner with short intervals.
func hasty(t *testing.T) lvm.Config {
	t.Helper()
	c, _, _ := lvmtest.RealConfig(t)
	c.WipeStep = mib
	return c
}

// started returns a running provisioner with short intervals.
func started(t *testing.T) (p *lvm.Provisioner, stop func()) {
	t.Helper()
	return lvmtest.Start(t, hasty(t))
}

// within calls do, which must end in time, with or without an error.
func within(t *testing.T, what string, do func(ctx context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	done := make(chan error, 1)
	begun := time.Now()
	go func() { done <- do(ctx) }()
	late := time.NewTimer(patience + 10*time.Second)
	defer late.Stop()
	select {
	case err := <-done:
		t.Logf("%s, after %s: %v", what, time.Since(begun).Round(10*time.Millisecond), err)
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s does not end", what)
		}
		return err
	case <-late.C:
		t.Fatalf("%s does not end and does not give up", what)
		return nil
	}
}

// refused calls do, which must fail with an error that names the group or the volume.
func refused(t *testing.T, what string, do func(ctx context.Context) error) {
	t.Helper()
	err := within(t, what, do)
	if err == nil || !strings.Contains(err.Error(), groupName) && !strings.Contains(err.Error(), "volume pvc-") {
		t.Errorf("%s: %v; want an error that names the group or the volume", what, err)
	}
}

// pool returns a pool as it is reported; the zero value if it is not.
func pool(t *testing.T, p provision.Provisioner, ref provision.PoolRef) (found provision.Pool) {
	t.Helper()
	var pools []provision.Pool
	err := within(t, "the report", func(ctx context.Context) (err error) {
		pools, err = p.Report(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(pools, func(p provision.Pool) bool { return p.PoolRef == ref })
	if i < 0 {
		return found
	}
	return pools[i]
}

// sound says whether a pool has no problem, nor have its volumes and snapshots, and no volume is
// being copied.
func sound(p provision.Pool) bool {
	return p.Problem == "" && !slices.ContainsFunc(p.Volumes, func(v provision.Volume) bool { return v.Problem != "" || v.Copying }) &&
		!slices.ContainsFunc(p.Snapshots, func(s provision.Snapshot) bool { return s.Problem != "" })
}

// places returns the offsets at which a volume of size bytes bears a text.
func places(size int64) []int64 { return []int64{0, mib + faultydisk.SectorSize, size - 4096} }

// put writes a text in several places of a device.
func put(t *testing.T, device string, size int64, text string) {
	t.Helper()
	for _, at := range places(size) {
		blockdevtest.WriteAt(t, device, text, at)
	}
}

// holds fails unless a device bears a text in all its places.
func holds(t *testing.T, device string, size int64, text string) {
	t.Helper()
	for _, at := range places(size) {
		if got := blockdevtest.ReadAt(t, device, len(text), at); got != text {
			t.Errorf("%s holds %q at %d, want %q", device, got, at, text)
		}
	}
}

// names returns the names of the group's logical volumes, from LVM.
func names(t *testing.T) []string {
	t.Helper()
	return strings.Fields(lvmtest.LVM(t, "lvs", "--noheadings", "--options", "lv_name", groupName))
}

// emptied deletes the volumes and snapshots in a pool. It fails unless all room is free again
// and only the logical volumes in remains are left.
func emptied(t *testing.T, p provision.Full, ref provision.PoolRef, remains ...string) {
	t.Helper()
	found := pool(t, p, ref)
	for _, v := range found.Volumes {
		if err := p.Delete(t.Context(), v.ID); err != nil {
			t.Errorf("deleting %s: %v", v.ID, err)
		}
	}
	for _, s := range found.Snapshots {
		if err := p.DeleteSnapshot(t.Context(), s.ID); err != nil {
			t.Errorf("deleting %s: %v", s.ID, err)
		}
	}
	eventually(t, p, ref, func(p provision.Pool) bool {
		return p.Free == p.Total && p.Foreign == 0 && len(p.Volumes)+len(p.Snapshots)+len(p.Wiping) == 0
	}, "room is lost")
	if left := names(t); !slices.Equal(left, remains) {
		t.Errorf("logical volumes %v are left, want %v", left, remains)
	}
	if left := devices(t, 99); len(remains) == 0 && len(left) != 0 {
		t.Errorf("devices %v are left", left)
	}
}
