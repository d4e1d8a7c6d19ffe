//go:build platform

package guesttest

import (
	"errors"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

const id = "pvc-1"

// find returns a volume, or nil if it is not there.
func find(t *testing.T, p provision.Provisioner, id string) *provision.Volume {
	t.Helper()
	v, err := p.Get(t.Context(), id)
	if errors.Is(err, provision.ErrNotFound) {
		return nil
	}
	if err != nil || v.Problem != "" {
		t.Fatalf("volume %s is %+v, %v", id, v, err)
	}
	return &v
}

// expect fails if a volume is not there between the steps made and deleted, or is there outside
// of them. During these two steps both are right.
func expect(t *testing.T, p provision.Provisioner, id string, step, made, deleted int) *provision.Volume {
	t.Helper()
	v := find(t, p, id)
	switch {
	case v == nil && step > made && step < deleted:
		t.Fatalf("volume %s is lost", id)
	case v != nil && (step < made || step > deleted):
		t.Fatalf("volume %+v should not be there", *v)
	}
	return v
}

func makes(r provision.CreateRequest) func(*testing.T, *lvm.Provisioner) {
	return func(t *testing.T, p *lvm.Provisioner) { t.Helper(); made(t, p, r) }
}

func writes(id, text string, size int64) func(*testing.T, *lvm.Provisioner) {
	return func(t *testing.T, p *lvm.Provisioner) { t.Helper(); put(t, find(t, p, id).Content.Source, size, text) }
}

func deletes(id string) func(*testing.T, *lvm.Provisioner) {
	return func(t *testing.T, p *lvm.Provisioner) {
		t.Helper()
		if err := p.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
}

// inertGroup makes the volume group on the disk. The machine does not activate the group by itself
// when udev sees the disk: the tests cannot replace the content of a disk below active volumes.
func inertGroup(t *testing.T) {
	t.Helper()
	lvmtest.LVM(t, "vgcreate", "--yes", "-ff", "--setautoactivation", "n", groupName, diskPath)
}

// thickLife makes a volume, writes to it, expands, deletes and wipes it.
func thickLife() life {
	ref := provision.PoolRef{Type: provision.LVM, Name: groupName}
	const created, written, expanded, deleted, wiped = 0, 1, 2, 3, 4
	return life{
		prepare: func(t *testing.T) provision.PoolRef {
			inertGroup(t)
			return ref
		},
		steps: []func(*testing.T, *lvm.Provisioner){
			created: makes(request(ref, id, 4)),
			written: writes(id, secret, 4*mib),
			expanded: func(t *testing.T, p *lvm.Provisioner) {
				if _, err := p.Expand(t.Context(), provision.ExpandRequest{ID: id, Size: 8 * mib}); err != nil {
					t.Fatal(err)
				}
			},
			deleted: deletes(id),
			wiped:   func(t *testing.T, p *lvm.Provisioner) { lvmtest.Settle(t.Context(), t, p, ref) },
		},
		check: func(t *testing.T, p *lvm.Provisioner, step int) {
			if v := expect(t, p, id, step, created, deleted); v != nil {
				if step > written {
					holds(t, v.Content.Source, 4*mib, secret)
				}
				if step > expanded && v.Size != 8*mib {
					t.Errorf("%+v was expanded", *v)
				}
			}
			if step > wiped {
				showsNothing(t, p, ref)
			}
		},
	}
}

// showsNothing fails if the free space of a group shows the content of a deleted volume.
func showsNothing(t *testing.T, p *lvm.Provisioner, ref provision.PoolRef) {
	t.Helper()
	v := made(t, p, provision.CreateRequest{ID: "pvc-all", Pool: ref, Size: pool(t, p, ref).Free, Wipe: provision.WipeNone})
	if strings.Contains(blockdevtest.ReadAt(t, v.Content.Source, int(v.Size), 0), secret) {
		t.Error("what a volume held that was wiped is read")
	}
	if err := p.Delete(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
}
