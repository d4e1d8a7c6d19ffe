package conformance

import (
	"errors"
	"testing"

	"berth.dev/berth/internal/provision"
)

const inlineID = "inline-conformance"

func (f fixture) inline(units int64) provision.CreateRequest {
	return provision.CreateRequest{
		ID: inlineID, Pool: f.Pool, Size: f.size(units), Tree: f.Filesystem,
		Inline: provision.Inline{PodUID: "0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f", Name: "scratch"},
		Labels: map[string]string{"namespace": "shop", "pod": "web-0"},
	}
}

func keepsOwner(t *testing.T, f fixture) {
	r := f.inline(2)
	made, err := f.Provisioner.Create(t.Context(), r)
	if err != nil || made.Inline != r.Inline {
		t.Fatalf("created %+v, %v, want it for %+v", made, err, r.Inline)
	}
	again, err := f.Provisioner.Create(t.Context(), r)
	if err != nil || again != made {
		t.Errorf("the second time: %+v, %v, the first time: %+v", again, err, made)
	}
	f.holds(t, made)
	f.Provisioner = f.Restart()
	f.holds(t, made)
	got, err := f.Provisioner.Get(t.Context(), r.ID)
	if err != nil || got != made {
		t.Errorf("after a restart: %+v, %v, want %+v", got, err, made)
	}
}

func refusesOtherOwner(t *testing.T, f fixture) {
	r := f.inline(2)
	made, err := f.Provisioner.Create(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for name, owner := range map[string]provision.Inline{
		"another pod":                    {PodUID: "another", Name: r.Inline.Name},
		"another volume of the same pod": {PodUID: r.Inline.PodUID, Name: "cache"},
		"a pod with a longer name":       {PodUID: r.Inline.PodUID + "-0", Name: r.Inline.Name},
	} {
		other := r
		other.Inline = owner
		if _, err := f.Provisioner.Create(t.Context(), other); !errors.Is(err, provision.ErrConflict) {
			t.Errorf("%s: got %v, want ErrConflict", name, err)
		}
	}
	f.holds(t, made)
}

func spareInPercent(t *testing.T, f fixture) {
	p := f.pool(t)
	half := (p.Total+1)/2 + p.Foreign
	units := (p.Total - half) / f.unit
	r := f.request(1, units+1)
	r.Limits.SparePercent = 50
	_, err := f.Provisioner.Create(t.Context(), r)
	wantError(t, err, provision.ErrNoSpace)
	r = f.request(1, units)
	r.Limits.SparePercent = 50
	made, err := f.Provisioner.Create(t.Context(), r)
	if err != nil {
		t.Fatalf("all but the spare: %v", err)
	}
	more := provision.ExpandRequest{ID: made.ID, Size: made.Size + 1, Limits: r.Limits}
	_, err = f.Provisioner.Expand(t.Context(), more)
	wantError(t, err, provision.ErrNoSpace)
	f.holds(t, made)
}
