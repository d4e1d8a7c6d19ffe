package conformance

import (
	"testing"

	"berth.dev/berth/internal/provision"
)

// RunWhole runs the suite for pools that one volume takes whole, such as disks. Start
// is called for each test.
func RunWhole(t *testing.T, start func(*testing.T) Harness) {
	for name, test := range map[string]func(*testing.T, fixture){
		"a volume takes the pool whole":                                   takesWhole,
		"a repeated request returns the same volume":                      repeatsWhole,
		"the same id with another size or pool is a conflict":             conflictsWhole,
		"an impossible request is invalid":                                invalid,
		"an unknown pool is missing":                                      poolMissing,
		"a pool has no space for a larger volume or a second volume":      noSpaceWhole,
		"ten requests at once for a volume make a single volume":          sameAtOnce,
		"requests at once for different pools all succeed":                differentPoolsAtOnce,
		"requests at once for a pool make a single volume":                onePoolAtOnce,
		"expanding never changes the size of a volume":                    expandsWhole,
		"expanding an unknown volume is not found":                        expandNotFound,
		"a blank volume is formatted once":                                formatsOnce,
		"another filesystem on a formatted volume is a conflict":          formatConflict,
		"many format requests at once make a single filesystem":           formatAtOnce,
		"an unreadable signature does not make a volume blank":            formatsByRecord,
		"a block device is recorded as given away and gets no filesystem": recordsWhatIsGivenRaw,
		"a volume made again after delete is blank":                       blankAfterDelete,
		"a path that leads to another volume is refused":                  misledWhole,
		"a delete is done at the return and can be repeated":              deletesWhole,
		"the next volume does not show the data of a deleted volume":      forgets,
		"an open device is in use and survives delete":                    inUse,
		"a pool with foreign data is closed and never touched":            foreignWhole,
		"a caller that gives up leaves no unfinished volume":              givesUp,
		"a call after the caller gave up changes nothing":                 goneAlready,
		"a restart changes no record":                                     restartsWhole,
		"changes are signalled":                                           signalsWhole,
		"any sequence of operations agrees with the model":                agreesWithWholeModel,
	} {
		t.Run(name, func(t *testing.T) { test(t, newWholeFixture(t, start(t))) })
	}
}

func newWholeFixture(t *testing.T, h Harness) fixture {
	t.Helper()
	f := fixture{Harness: h, whole: true}
	if len(h.Pools) < 2 || h.Pools[0] != h.Pool {
		t.Fatalf("the harness has the pools %v, want two or more, of which %v is the first", h.Pools, h.Pool)
	}
	for i := range h.Pools {
		f := f.on(t, i)
		if p := f.pool(t); p.Total <= 0 || p.Unit != p.Total || p.Free != p.Total || len(p.Volumes) != 0 || p.Problem != "" {
			t.Fatalf("the harness's pool is not one empty unit: %+v", p)
		}
	}
	return f.on(t, 0)
}

// on returns the fixture with Pool set to the pool of that index.
func (f fixture) on(t testing.TB, pool int) fixture {
	t.Helper()
	f.Pool = f.Pools[pool]
	f.unit = f.pool(t).Unit
	return f
}

func takesWhole(t *testing.T, f fixture) {
	for i := range f.Pools {
		f := f.on(t, i)
		small := f.request(i, 1)
		small.Size = 1
		v, err := f.Provisioner.Create(t.Context(), small)
		if err != nil || v.Size != f.unit || v.ID != id(i) || v.Pool != f.Pool || v.Filesystem != "" || v.Problem != "" || v.Content.Source == "" {
			t.Errorf("created %+v, %v, want a blank volume of %d bytes", v, err, f.unit)
		}
		f.holds(t, v)
		if p := f.pool(t); p.Free != 0 || p.Total != f.unit || p.Foreign != 0 {
			t.Errorf("the pool with the volume: %+v", p)
		}
		if got := f.get(t, i); got != v {
			t.Errorf("Get returned %+v, want what Create returned: %+v", got, v)
		}
	}
}

func repeatsWhole(t *testing.T, f fixture) {
	v := f.create(t, 1, 1)
	for _, size := range []int64{1, f.unit - 1, f.unit} {
		r := f.request(1, 1)
		r.Size = size
		if again, err := f.Provisioner.Create(t.Context(), r); err != nil || again != v {
			t.Errorf("a size that rounds to the same: %+v, %v, the first time: %+v", again, err, v)
		}
	}
	f.holds(t, v)
}

func conflictsWhole(t *testing.T, f fixture) {
	v := f.create(t, 1, 1)
	for name, change := range map[string]func(*provision.CreateRequest){
		"a larger size":   func(r *provision.CreateRequest) { r.Size = f.unit + 1 },
		"another pool":    func(r *provision.CreateRequest) { r.Pool, r.Size = f.Pools[1], 1 },
		"an unknown pool": func(r *provision.CreateRequest) { r.Pool.Name += "-other" },
	} {
		r := f.request(1, 1)
		change(&r)
		_, err := f.Provisioner.Create(t.Context(), r)
		t.Log(name)
		wantError(t, err, provision.ErrConflict)
	}
	f.holds(t, v)
	f.on(t, 1).holds(t)
}

func noSpaceWhole(t *testing.T, f fixture) {
	r := f.request(1, 1)
	r.Size = f.unit + 1
	_, err := f.Provisioner.Create(t.Context(), r)
	wantError(t, err, provision.ErrNoSpace)
	f.holds(t)
	v := f.create(t, 1, 1)
	r = f.request(2, 1)
	r.Size = 1
	_, err = f.Provisioner.Create(t.Context(), r)
	wantError(t, err, provision.ErrNoSpace)
	f.holds(t, v)
}

func expandsWhole(t *testing.T, f fixture) {
	v := f.create(t, 1, 1)
	for _, size := range []int64{1, f.unit} {
		if got, err := f.Provisioner.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: size}); err != nil || got != v {
			t.Errorf("expanding to %d bytes: %+v, %v; want %+v", size, got, err, v)
		}
	}
	_, err := f.Provisioner.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: f.unit + 1})
	wantError(t, err, provision.ErrNoSpace)
	f.holds(t, v)
}
