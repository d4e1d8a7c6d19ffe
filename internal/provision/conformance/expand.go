package conformance

import (
	"testing"

	"berth.dev/berth/internal/provision"
)

func expands(t *testing.T, f fixture) {
	v := f.create(t, 1, 2)
	for _, step := range []struct {
		size, units int64
	}{{f.size(4), 4}, {f.size(4), 4}, {1, 4}, {4*f.unit + 1, 5}} {
		got, err := f.Provisioner.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: step.size})
		v.Size = step.units * f.unit
		if err != nil || got != v {
			t.Errorf("expanding to %d bytes: %+v, %v; want %+v", step.size, got, err, v)
		}
		f.holds(t, v)
	}
}

func spareOnExpand(t *testing.T, f fixture) {
	v := f.create(t, 1, 2)
	all := v.Size + f.pool(t).Free
	_, err := f.Provisioner.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: all + 1})
	wantError(t, err, provision.ErrNoSpace)
	_, err = f.Provisioner.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: all, Limits: provision.Limits{Spare: 1}})
	wantError(t, err, provision.ErrNoSpace)
	f.holds(t, v)

	v.Size = all - f.unit
	got, err := f.Provisioner.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: v.Size, Limits: provision.Limits{Spare: f.unit}})
	if err != nil || got != v {
		t.Errorf("all but the spare: %+v, %v", got, err)
	}
	// A size that is met already does not depend on room.
	if _, err := f.Provisioner.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: v.Size, Limits: provision.Limits{Spare: provision.MaxSize, SparePercent: 100}}); err != nil {
		t.Errorf("repeating: %v", err)
	}
}

func expandNotFound(t *testing.T, f fixture) {
	_, err := f.Provisioner.Expand(t.Context(), provision.ExpandRequest{ID: id(1), Size: f.unit})
	wantError(t, err, provision.ErrNotFound)
	_, err = f.Provisioner.Format(t.Context(), provision.FormatRequest{ID: id(1), Filesystem: f.native()})
	wantError(t, err, provision.ErrNotFound)
	f.holds(t)
}
