package conformance

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
)

// fixture is a harness with shorthands that fail the test.
type fixture struct {
	Harness
	unit int64
	// whole says that a volume takes the pool whole, whatever its size.
	whole bool
}

func newFixture(t *testing.T, h Harness) fixture {
	t.Helper()
	f := fixture{Harness: h}
	p := f.pool(t)
	if p.Unit <= 0 || p.Free < 32*p.Unit || len(p.Volumes) != 0 || p.Problem != "" {
		t.Fatalf("the harness's pool is not empty and large enough: %+v", p)
	}
	f.unit = p.Unit
	return f
}

func id(n int) string { return fmt.Sprintf("pvc-conformance-%d", n) }

// size returns a size in bytes that the pool must round up to n units, or to the one unit of
// a whole pool.
func (f fixture) size(n int64) int64 {
	if f.whole {
		n = 1
	}
	return n*f.unit - 1
}

func (f fixture) request(n int, units int64) provision.CreateRequest {
	return provision.CreateRequest{
		ID: id(n), Pool: f.Pool, Size: f.size(units), Wipe: f.Wipe, Tree: f.Filesystem,
		Labels: map[string]string{"namespace": "shop", "claim": fmt.Sprintf("data-%d", n)},
	}
}

// create makes volume n with a size in units.
func (f fixture) create(t *testing.T, n int, units int64) provision.Volume {
	t.Helper()
	v, err := f.Provisioner.Create(t.Context(), f.request(n, units))
	if err != nil {
		t.Fatalf("creating volume %d: %v", n, err)
	}
	return v
}

func (f fixture) format(t *testing.T, n int, fs string) {
	t.Helper()
	if _, err := f.Provisioner.Format(t.Context(), provision.FormatRequest{ID: id(n), Filesystem: fs}); err != nil {
		t.Fatalf("formatting volume %d: %v", n, err)
	}
}

// native is the filesystem that is made on volumes of this kind.
func (f fixture) native() string { return cmp.Or(f.Filesystem, provision.Ext4) }

// made fails unless mkfs ran want times on a volume. It never runs on a volume that is a
// filesystem by itself.
func (f fixture) made(t *testing.T, n, want int) {
	t.Helper()
	if f.Filesystem != "" {
		want = 0
	}
	if got := f.Formats(id(n)); got != want {
		t.Errorf("a filesystem was made %d times on volume %d, want %d", got, n, want)
	}
}

func (f fixture) delete(t *testing.T, n int) {
	t.Helper()
	if err := f.Provisioner.Delete(t.Context(), id(n)); err != nil {
		t.Fatalf("deleting volume %d: %v", n, err)
	}
	f.settle(t)
}

func (f fixture) get(t *testing.T, n int) provision.Volume {
	t.Helper()
	v, err := f.Provisioner.Get(t.Context(), id(n))
	if err != nil {
		t.Fatalf("getting volume %d: %v", n, err)
	}
	return v
}

// pool returns the pool as reported, after checking that its figures add up.
func (f fixture) pool(t testing.TB) provision.Pool {
	t.Helper()
	pools, err := f.Provisioner.Report(t.Context())
	if err != nil {
		t.Fatalf("reporting: %v", err)
	}
	i := slices.IndexFunc(pools, func(p provision.Pool) bool { return p.PoolRef == f.Pool })
	if i < 0 {
		t.Fatalf("the report lacks pool %v: %+v", f.Pool, pools)
	}
	p := pools[i]
	rest := p.Total - p.Foreign
	for _, s := range p.Snapshots {
		rest -= s.Allocated
		if s.Pool != f.Pool || s.Size <= 0 || s.Allocated < 0 {
			t.Errorf("snapshot %+v does not belong into pool %+v", s, p.PoolRef)
		}
	}
	for _, v := range slices.Concat(p.Volumes, p.Wiping) {
		rest -= v.Size
		if v.Pool != f.Pool || v.Size%p.Unit != 0 {
			t.Errorf("volume %+v does not belong into pool %+v", v, p.PoolRef)
		}
	}
	if rest != p.Free || p.Free < 0 || p.Foreign < 0 {
		t.Errorf("the pool's figures do not add up: %+v", p)
	}
	return p
}

// holds fails unless the pool holds exactly these volumes.
func (f fixture) holds(t testing.TB, want ...provision.Volume) {
	t.Helper()
	got := f.pool(t).Volumes
	byID := func(a, b provision.Volume) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(got, byID)
	slices.SortFunc(want, byID)
	if diff := gocmp.Diff(append([]provision.Volume{}, want...), append([]provision.Volume{}, got...)); diff != "" {
		t.Errorf("the pool's volumes (-want +got):\n%s", diff)
	}
}

func wantError(t testing.TB, err, class error) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("got error %v, want one of class %q", err, class)
	}
}
