package conformance

import (
	"testing"

	"berth.dev/berth/internal/provision"
)

func deletes(t *testing.T, f fixture) {
	free := f.pool(t).Free
	keep := f.create(t, 1, 2)
	f.create(t, 2, 3)
	f.delete(t, 2)
	f.holds(t, keep)
	if now := f.pool(t).Free; now != free-keep.Size {
		t.Errorf("after delete %d bytes are free, want %d", now, free-keep.Size)
	}
	_, err := f.Provisioner.Get(t.Context(), id(2))
	wantError(t, err, provision.ErrNotFound)
	f.delete(t, 2)
	f.delete(t, 3)
	f.holds(t, keep)
}

func inUse(t *testing.T, f fixture) {
	v := f.create(t, 1, 2)
	closeDevice := f.Open(v)
	wantError(t, f.Provisioner.Delete(t.Context(), v.ID), provision.ErrInUse)
	f.holds(t, v)
	closeDevice()
	f.delete(t, 1)
	f.holds(t)
}

func foreign(t *testing.T, f fixture) {
	before := f.pool(t)
	v := f.create(t, 1, 2)
	f.PutForeign("theirs", 3*f.unit)
	f.Provisioner = f.Restart()
	f.holds(t, v)
	after := f.pool(t)
	if after.Foreign-before.Foreign != 3*f.unit || after.Total != before.Total {
		t.Errorf("the pool went from %+v to %+v, want 3 units more foreign", before, after)
	}
	units := after.Free / f.unit
	_, err := f.Provisioner.Create(t.Context(), f.request(2, units+1))
	wantError(t, err, provision.ErrNoSpace)
}

func foreignName(t *testing.T, f fixture) {
	f.PutForeign(id(1), 2*f.unit)
	f.Provisioner = f.Restart()
	_, err := f.Provisioner.Create(t.Context(), f.request(1, 2))
	wantError(t, err, provision.ErrConflict)
	wantError(t, f.Provisioner.Delete(t.Context(), id(1)), provision.ErrConflict)
	_, err = f.Provisioner.Get(t.Context(), id(1))
	wantError(t, err, provision.ErrNotFound)
	_, err = f.Provisioner.Expand(t.Context(), provision.ExpandRequest{ID: id(1), Size: 4 * f.unit})
	wantError(t, err, provision.ErrNotFound)
	f.holds(t)
	if p := f.pool(t); p.Foreign < 2*f.unit {
		t.Errorf("what others had is gone: %+v", p)
	}
}
