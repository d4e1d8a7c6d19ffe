package conformance

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"berth.dev/berth/internal/provision"
)

func roundsUp(t *testing.T, f fixture) {
	v := f.create(t, 1, 3)
	if v.Size != 3*f.unit || v.ID != id(1) || v.Pool != f.Pool || v.Filesystem != "" || v.Problem != "" || v.Content.Source == "" {
		t.Errorf("created %+v, want a blank volume of %d bytes", v, 3*f.unit)
	}
	f.holds(t, v)
	if !f.whole && v.Claim != "shop/data-1" { // a partition has no room for labels
		t.Errorf("the record names claim %q", v.Claim)
	}
	if got := f.get(t, 1); got != v {
		t.Errorf("Get returned %+v, want what Create returned: %+v", got, v)
	}
}

func repeats(t *testing.T, f fixture) {
	v := f.create(t, 1, 2)
	free := f.pool(t).Free
	if again := f.create(t, 1, 2); again != v {
		t.Errorf("the second time: %+v, the first time: %+v", again, v)
	}
	exact := f.request(1, 2)
	exact.Size = 2 * f.unit
	if again, err := f.Provisioner.Create(t.Context(), exact); err != nil || again != v {
		t.Errorf("a size that rounds to the same: %+v, %v", again, err)
	}
	if now := f.pool(t).Free; now != free {
		t.Errorf("free went from %d to %d by repeating", free, now)
	}
}

func conflicts(t *testing.T, f fixture) {
	v := f.create(t, 1, 2)
	for name, change := range map[string]func(*provision.CreateRequest){
		"a larger size":  func(r *provision.CreateRequest) { r.Size = 3 * f.unit },
		"a smaller size": func(r *provision.CreateRequest) { r.Size = f.unit },
		"another pool":   func(r *provision.CreateRequest) { r.Pool.Name += "-other" },
	} {
		r := f.request(1, 2)
		change(&r)
		if _, err := f.Provisioner.Create(t.Context(), r); !errors.Is(err, provision.ErrConflict) {
			t.Errorf("%s: got %v, want ErrConflict", name, err)
		}
	}
	f.holds(t, v)
}

func invalid(t *testing.T, f fixture) {
	ctx, p := t.Context(), f.Provisioner
	good := f.request(1, 1)
	for name, change := range map[string]func(*provision.CreateRequest){
		"a foreign name":                   func(r *provision.CreateRequest) { r.ID = "root" },
		"an option":                        func(r *provision.CreateRequest) { r.ID = "-f" },
		"a path":                           func(r *provision.CreateRequest) { r.ID = "pvc-a/b" },
		"an empty pool":                    func(r *provision.CreateRequest) { r.Pool.Name = "" },
		"no size":                          func(r *provision.CreateRequest) { r.Size = 0 },
		"an absurd size":                   func(r *provision.CreateRequest) { r.Size = provision.MaxSize + 1 },
		"an inline id without an owner":    func(r *provision.CreateRequest) { r.ID = inlineID },
		"an owner without an inline id":    func(r *provision.CreateRequest) { r.Inline = f.inline(1).Inline },
		"an owner that is no pod":          func(r *provision.CreateRequest) { *r = f.inline(1); r.Inline.PodUID = "a/b" },
		"an owner without name":            func(r *provision.CreateRequest) { *r = f.inline(1); r.Inline.Name = "" },
		"a spare of more than 100 percent": func(r *provision.CreateRequest) { r.Limits.SparePercent = 101 },
		"a strange label":                  func(r *provision.CreateRequest) { r.Labels = map[string]string{"a": "\n"} },
	} {
		r := good
		change(&r)
		if _, err := p.Create(ctx, r); !errors.Is(err, provision.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	_, err := p.Get(ctx, "../etc")
	wantError(t, err, provision.ErrInvalid)
	_, err = p.Expand(ctx, provision.ExpandRequest{ID: id(1), Size: -1})
	wantError(t, err, provision.ErrInvalid)
	_, err = p.Format(ctx, provision.FormatRequest{ID: id(1), Filesystem: "vfat"})
	wantError(t, err, provision.ErrInvalid)
	_, err = p.Format(ctx, provision.FormatRequest{ID: id(1), Filesystem: provision.Ext4, Options: "-U clear"})
	wantError(t, err, provision.ErrInvalid)
	wantError(t, p.Delete(ctx, "vg/lv"), provision.ErrInvalid)
	f.holds(t)
}

func poolMissing(t *testing.T, f fixture) {
	for _, pool := range []provision.PoolRef{{Type: f.Pool.Type, Name: "no-such-pool"}, {Type: "Other", Name: f.Pool.Name}} {
		r := f.request(1, 1)
		r.Pool = pool
		_, err := f.Provisioner.Create(t.Context(), r)
		wantError(t, err, provision.ErrPoolMissing)
	}
	_, err := f.Provisioner.Get(t.Context(), id(1))
	wantError(t, err, provision.ErrNotFound)
}

func noSpace(t *testing.T, f fixture) {
	units := f.pool(t).Free / f.unit
	_, err := f.Provisioner.Create(t.Context(), f.request(1, units+1))
	wantError(t, err, provision.ErrNoSpace)
	f.holds(t)
	v := f.create(t, 1, units)
	_, err = f.Provisioner.Create(t.Context(), f.request(2, 1))
	wantError(t, err, provision.ErrNoSpace)
	f.holds(t, v)
	if free := f.pool(t).Free; free != 0 {
		t.Errorf("a full pool has %d bytes free", free)
	}
}

func spareOnCreate(t *testing.T, f fixture) {
	units := f.pool(t).Free / f.unit
	r := f.request(1, units)
	r.Limits.Spare = 1 // one byte takes a whole unit away
	_, err := f.Provisioner.Create(t.Context(), r)
	wantError(t, err, provision.ErrNoSpace)
	r = f.request(1, units-1)
	r.Limits.Spare = f.unit
	if _, err := f.Provisioner.Create(t.Context(), r); err != nil {
		t.Errorf("all but the spare: %v", err)
	}
}

func sameAtOnce(t *testing.T, f fixture) {
	free := f.pool(t).Free
	got := make([]provision.Volume, 10)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = f.Provisioner.Create(t.Context(), f.request(1, 2)); err != nil {
				t.Errorf("request %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	for i := range got {
		if got[i] != got[0] {
			t.Errorf("request %d got %+v, request 0 got %+v", i, got[i], got[0])
		}
	}
	f.holds(t, got[0])
	if now := f.pool(t).Free; free-now != got[0].Size {
		t.Errorf("free went from %d to %d for one volume of %d bytes", free, now, got[0].Size)
	}
}

func differentAtOnce(t *testing.T, f fixture) {
	got := make([]provision.Volume, 4)
	var wg sync.WaitGroup
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = f.Provisioner.Create(t.Context(), f.request(i, int64(i+1))); err != nil {
				t.Errorf("volume %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	f.holds(t, got...)
}

func neverOvercommits(t *testing.T, f fixture) {
	units := f.pool(t).Free / f.unit
	each := units/3 + 1 // two fit, the third does not
	var wg sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		wg.Go(func() { _, errs[i] = f.Provisioner.Create(t.Context(), f.request(i, each)) })
	}
	wg.Wait()
	made := 0
	for i, err := range errs {
		if err == nil {
			made++
		} else if !errors.Is(err, provision.ErrNoSpace) {
			t.Errorf("volume %d: %v, want ErrNoSpace", i, err)
		}
	}
	if p := f.pool(t); made != 2 || len(p.Volumes) != 2 {
		t.Errorf("%d requests succeeded and the pool holds %s, want 2", made, fmt.Sprint(p.Volumes))
	}
}
