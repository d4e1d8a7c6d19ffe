package conformance

import (
	"testing"

	"berth.dev/berth/internal/provision"
)

// RunTwins runs the suite of volumes that exist in two pools, with harnesses that have a Twin.
func RunTwins(t *testing.T, start func(*testing.T) Harness) {
	t.Run("an id in two pools is touched in neither pool", func(t *testing.T) {
		f := fixtureOf(t, start(t))
		v := f.create(t, 1, 2)
		remove := f.Twin(v)
		for range 2 {
			f.Provisioner = f.Restart()
			f.untouched(t, v.ID, provision.ErrConflict)
			_, err := f.Provisioner.Create(t.Context(), f.request(1, 2))
			wantError(t, err, provision.ErrConflict)
			f.troubled(t, v.ID, 2)
		}
		remove()
		f.Provisioner = f.Restart()
		f.holds(t, v)
		f.delete(t, 1)
	})
}

// RunNamesakes runs the suite of pools that share a name, with harnesses that have a
// Namesake.
func RunNamesakes(t *testing.T, start func(*testing.T) Harness) {
	t.Run("two pools with the same name are neither believed nor changed", func(t *testing.T) {
		f := fixtureOf(t, start(t))
		v := f.create(t, 1, 2)
		remove := f.Namesake(id(2))
		f.Provisioner = f.Restart()
		for _, id := range []string{v.ID, id(2), id(3)} {
			f.untouched(t, id, provision.ErrUnavailable)
		}
		_, err := f.Provisioner.Create(t.Context(), f.request(4, 1))
		wantError(t, err, provision.ErrUnavailable)
		remove()
		f.Provisioner = f.Restart()
		f.holds(t, v)
		f.delete(t, 1)
	})
}

// RunAway runs the suite of pools that are away when the process begins, with harnesses that
// have an Away.
func RunAway(t *testing.T, start func(*testing.T) Harness) {
	t.Run("a pool that was away at the start is not reported and comes back with the volumes", func(t *testing.T) {
		f := fixtureOf(t, start(t))
		v := f.create(t, 1, 2)
		back := f.Away()
		f.Provisioner = f.Restart()
		_, err := f.Provisioner.Get(t.Context(), v.ID)
		wantError(t, err, provision.ErrNotFound)
		if err := f.Provisioner.Delete(t.Context(), v.ID); err != nil {
			t.Errorf("deleting what is not there: %v", err)
		}
		// The missing pool tells a caller that the volume may still exist.
		f.absent(t)
		_, err = f.Provisioner.Create(t.Context(), f.request(1, 2))
		wantError(t, err, provision.ErrPoolMissing)
		back()
		f.Provisioner = f.Restart()
		again, err := f.Provisioner.Get(t.Context(), v.ID)
		wantError(t, err, nil)
		v.Content.Identity = again.Content.Identity // the kernel gives a disk that is plugged in again a new number
		f.holds(t, v)
		f.delete(t, 1)
	})
}

// fixtureOf returns a fixture over a pool of any kind.
func fixtureOf(t *testing.T, h Harness) fixture {
	t.Helper()
	if len(h.Pools) > 0 {
		return newWholeFixture(t, h)
	}
	return newFixture(t, h)
}

// untouched fails unless every call for a volume fails with an error of a class.
func (f fixture) untouched(t *testing.T, id string, class error) {
	t.Helper()
	ctx := t.Context()
	_, err := f.Provisioner.Get(ctx, id)
	wantError(t, err, class)
	_, err = f.Provisioner.Expand(ctx, provision.ExpandRequest{ID: id, Size: f.size(16)})
	wantError(t, err, class)
	_, err = f.Provisioner.Format(ctx, provision.FormatRequest{ID: id, Filesystem: f.native()})
	wantError(t, err, class)
	wantError(t, f.Provisioner.Delete(ctx, id), class)
}

// troubled fails unless want pools report the volume with a problem.
func (f fixture) troubled(t *testing.T, id string, want int) {
	t.Helper()
	pools, err := f.Provisioner.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, p := range pools {
		for _, v := range p.Volumes {
			if v.ID == id && v.Problem != "" {
				n++
			}
		}
	}
	if n != want {
		t.Errorf("volume %s is reported %d times with a problem, want %d: %+v", id, n, want, pools)
	}
}

// absent fails if the pool is reported.
func (f fixture) absent(t *testing.T) {
	t.Helper()
	pools, err := f.Provisioner.Report(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pools {
		if p.PoolRef == f.Pool {
			t.Errorf("the pool is reported: %+v", p)
		}
	}
}
