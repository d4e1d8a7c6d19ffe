//go:build platform

package guesttest

import (
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

const (
	copyID = "pvc-2"
	snapID = "snap-1"
)

func TestThePowerMayFailAtEveryWriteOfThinVolumesOnRealLVM(t *testing.T) {
	powerFails(t, thinLife())
}

// thinLife makes a volume and a snapshot of it, restores the snapshot into a larger volume, and
// deletes them all.
func thinLife() life {
	const before, after = "before the snapshot", "behind the snapshot"
	ref := provision.PoolRef{Type: provision.LVMThin, Name: groupName + "/pool"}
	const created, written, taken, overwritten, restored, deleted, dropped, emptied = 0, 1, 2, 3, 4, 5, 6, 7
	return life{
		remains: []string{"pool"},
		prepare: func(t *testing.T) provision.PoolRef {
			inertGroup(t)
			lvmtest.LVM(t, "lvcreate", "--yes", "--type", "thin-pool", "--size", "24M", "--name", "pool", groupName)
			return ref
		},
		steps: []func(*testing.T, *lvm.Provisioner){
			created: makes(request(ref, id, 8)),
			written: writes(id, before, 8*mib),
			taken: func(t *testing.T, p *lvm.Provisioner) {
				if _, err := p.Snapshot(t.Context(), snapshotOf(id, snapID)); err != nil {
					t.Fatal(err)
				}
			},
			overwritten: writes(id, after, 8*mib),
			restored:    makes(copyOf(request(ref, copyID, 12), snapID)),
			deleted:     deletes(id),
			dropped: func(t *testing.T, p *lvm.Provisioner) {
				if err := p.DeleteSnapshot(t.Context(), snapID); err != nil {
					t.Fatal(err)
				}
			},
			emptied: deletes(copyID),
		},
		check: func(t *testing.T, p *lvm.Provisioner, step int) {
			if v := expect(t, p, id, step, created, deleted); v != nil && step > written && step != overwritten {
				want := before
				if step > overwritten {
					want = after
				}
				holds(t, v.Content.Source, 8*mib, want)
			}
			s, err := p.GetSnapshot(t.Context(), snapID)
			switch there := err == nil && s.Problem == "" && s.Size == 8*mib; {
			case !there && step > taken && step < dropped:
				t.Errorf("the snapshot is %+v, %v", s, err)
			case there && (step < taken || step > dropped):
				t.Errorf("the snapshot should not be there: %+v", s)
			}
			if v := expect(t, p, copyID, step, restored, emptied); v != nil && !v.Copying {
				holds(t, v.Content.Source, 8*mib, before)
				if v.Size != 12*mib {
					t.Errorf("%+v was restored", *v)
				}
			}
		},
	}
}
