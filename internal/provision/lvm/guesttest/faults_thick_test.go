//go:build platform

package guesttest

import (
	"context"
	"slices"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/faultydisk"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

// faults are the ways in which a disk fails, each with its table.
var faults = map[string]struct {
	table func(*faultydisk.Disk) string
	// changes says that LVM can still change the group.
	changes bool
}{
	"every request":                     {(*faultydisk.Disk).Fails, false},
	onlyWrites:                          {(*faultydisk.Disk).FailsWrites, false},
	"every request behind the metadata": {func(d *faultydisk.Disk) string { return d.FailsBehind(metadata) }, true},
}

const onlyWrites = "writes alone"

func TestADiskThatFailsLosesAndLeaksNothingOnRealLVM(t *testing.T) {
	for name, fault := range faults {
		t.Run("the disk fails "+name, func(t *testing.T) {
			d := newDisk(t, lvmtest.Disks(t, 1)[0], 128*mib)
			ref := lvmtest.RealGroup(t, groupName, diskPath)
			p, stop := started(t)
			kept := made(t, p, request(ref, "pvc-kept", 8))
			put(t, kept.Content.Source, kept.Size, secret)
			gone := made(t, p, request(ref, "pvc-gone", 8))
			put(t, gone.Content.Source, gone.Size, secret)
			made(t, p, request(ref, "pvc-grown", 4))
			made(t, p, request(ref, "pvc-blank", 32))

			d.Load(fault.table(d))
			tryThick(t, p, ref, fault.changes)

			d.Heal()
			eventually(t, p, ref, sound, "the group did not come back")
			doThick(t, p, ref)
			holds(t, kept.Content.Source, kept.Size, secret)
			stop()
			p, _ = started(t)
			eventually(t, p, ref, func(p provision.Pool) bool { return sound(p) && len(p.Volumes) == 4 && len(p.Wiping) == 0 }, "a new provisioner sees something else")
			emptied(t, p, ref)
		})
	}
}

// thickSteps returns idempotent operations by their names.
func thickSteps(p *lvm.Provisioner, ref provision.PoolRef) map[string]func(ctx context.Context) error {
	return map[string]func(ctx context.Context) error{
		"creating": func(ctx context.Context) error {
			_, err := p.Create(ctx, request(ref, "pvc-new", 4))
			return err
		},
		"formatting": func(ctx context.Context) error {
			_, err := p.Format(ctx, provision.FormatRequest{ID: "pvc-blank", Filesystem: provision.Ext4})
			return err
		},
		"expanding": func(ctx context.Context) error {
			_, err := p.Expand(ctx, provision.ExpandRequest{ID: "pvc-grown", Size: 8 * mib})
			return err
		},
		"deleting": func(ctx context.Context) error { return p.Delete(ctx, "pvc-gone") },
	}
}

// tryThick checks that every operation is refused that needs the failed part of the disk.
// Expanding and deleting change only LVM's metadata. The deleted volume then waits to be wiped.
func tryThick(t *testing.T, p *lvm.Provisioner, ref provision.PoolRef, changes bool) {
	t.Helper()
	for what, do := range thickSteps(p, ref) {
		if changes && (what == "expanding" || what == "deleting") {
			if err := within(t, what, do); err != nil {
				t.Errorf("%s needs the metadata alone: %v", what, err)
			}
			continue
		}
		refused(t, what, do)
	}
	if changes {
		eventually(t, p, ref, func(p provision.Pool) bool {
			return len(p.Wiping) == 1 && p.Wiping[0].ID == "pvc-gone" && p.Wiping[0].Problem != ""
		}, "what cannot be wiped has no problem")
	}
	if got := pool(t, p, ref); len(got.Volumes)+len(got.Wiping) < 4 {
		t.Errorf("reported %+v; want all that was there", got)
	}
}

// doThick checks that every operation works, and took effect only once.
func doThick(t *testing.T, p *lvm.Provisioner, ref provision.PoolRef) {
	t.Helper()
	for what, do := range thickSteps(p, ref) {
		if err := within(t, what, do); err != nil {
			t.Errorf("%s on a disk that works again: %v", what, err)
		}
	}
	lvmtest.Settle(t.Context(), t, p, ref)
	got := pool(t, p, ref)
	sizes := map[string]int64{}
	for _, v := range got.Volumes {
		sizes[v.ID] = v.Size / mib
		if v.ID == "pvc-blank" && v.Filesystem != provision.Ext4 {
			t.Errorf("%+v was formatted", v)
		}
	}
	if sizes["pvc-kept"] != 8 || sizes["pvc-grown"] != 8 || sizes["pvc-new"] != 4 || sizes["pvc-blank"] != 32 || len(sizes) != 4 {
		t.Errorf("there are volumes of so many MiB: %v", sizes)
	}
	if left := names(t); len(left) != 4 || slices.Contains(left, "pvc-gone") {
		t.Errorf("there are logical volumes %v", left)
	}
}
