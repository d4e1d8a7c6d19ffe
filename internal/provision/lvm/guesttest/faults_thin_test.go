//go:build platform

package guesttest

import (
	"context"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

func TestAThinPoolWhoseDiskFailsComesBackOnRealLVM(t *testing.T) {
	for name, fault := range faults {
		t.Run("the disk fails "+name, func(t *testing.T) {
			d := newDisk(t, lvmtest.Disks(t, 1)[0], 128*mib)
			group := lvmtest.RealGroup(t, groupName, diskPath)
			ref := lvmtest.RealThinPool(t, group.Name, "pool", 64*mib)
			p, _ := started(t)
			v := made(t, p, request(ref, "pvc-kept", 8))
			put(t, v.Content.Source, v.Size, secret)
			if _, err := p.Snapshot(t.Context(), snapshotOf(v.ID, "snap-kept")); err != nil {
				t.Fatal(err)
			}
			other := made(t, p, request(ref, "pvc-other", 8))

			d.Load(fault.table(d))
			if err := within(t, "writing", func(context.Context) error { return overwrite(other.Content.Source, other.Size) }); err == nil {
				t.Error("a disk that fails was written")
			}
			for what, do := range thinSteps(p, ref) {
				refused(t, what, do)
			}
			// If only writes fail, LVM and the kernel can read everything. As long as nothing else is
			// written, only the writer sees the failure.
			if name != onlyWrites {
				eventually(t, p, ref, func(p provision.Pool) bool { return p.Problem != "" }, "a pool that failed has no problem")
			}

			d.Heal()
			wayBack(t, p, ref)
			holds(t, v.Content.Source, v.Size, secret)
			for what, do := range thinSteps(p, ref) {
				if err := within(t, what, do); err != nil {
					t.Errorf("%s when the disk works again: %v", what, err)
				}
			}
			restored := made(t, p, copyOf(request(ref, "pvc-restored", 12), "snap-kept"))
			holds(t, restored.Content.Source, 8*mib, secret)
			eventually(t, p, ref, sound, "the pool did not come back")
			emptied(t, p, ref, "pool")
		})
	}
}

// wayBack repairs a pool as the pool's problem says, once the disk works again. It runs the
// command exactly as the problem names it, and then gets the volumes, which activates them.
func wayBack(t *testing.T, p *lvm.Provisioner, ref provision.PoolRef) {
	t.Helper()
	const deactivates = "(lvchange --activate n "
	eventually(t, p, ref, func(p provision.Pool) bool { return p.Problem == "" || strings.Contains(p.Problem, deactivates) }, "the problem names no way back")
	problem := pool(t, p, ref).Problem
	t.Logf("when the disk works again: %q", problem)
	if problem == "" {
		return
	}
	command := between(t, problem, "(", ")")
	quoted := between(t, command, "'", "'")
	before, after, _ := strings.Cut(command, "'"+quoted+"'")
	p.Wait()
	lvmtest.LVM(t, slices.Concat(strings.Fields(before), []string{quoted}, strings.Fields(after))...)
	if left := devices(t, 99); len(left) > 0 {
		t.Errorf("devices %v are left", left)
	}
	for _, id := range []string{"pvc-kept", "pvc-other"} {
		if v, err := p.Get(t.Context(), id); err != nil || v.Problem != "" {
			t.Errorf("volume %+v, %v", v, err)
		}
	}
	eventually(t, p, ref, func(p provision.Pool) bool { return p.Problem == "" && p.Fill.Data > 0 }, "the pool that was activated anew does not work")
}

// between returns the part of a text between two others.
func between(t *testing.T, text, before, after string) string {
	t.Helper()
	_, rest, found := strings.Cut(text, before)
	middle, _, ended := strings.Cut(rest, after)
	if !found || !ended {
		t.Fatalf("%q names nothing between %q and %q", text, before, after)
	}
	return middle
}
