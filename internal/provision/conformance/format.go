package conformance

import (
	"sync"
	"testing"

	"berth.dev/berth/internal/provision"
)

// filesystemUnits of 4 MiB have room for ext4.
const filesystemUnits = 8

func formatsOnce(t *testing.T, f fixture) {
	v := f.create(t, 1, filesystemUnits)
	v.Filesystem = f.native()
	all := []string{"-I 512 -E stride=4", "", "-I 1024"} // only the first ones have an effect
	if f.Filesystem != "" {
		all = []string{"", ""}
	}
	for _, options := range all {
		got, err := f.Provisioner.Format(t.Context(), provision.FormatRequest{ID: v.ID, Filesystem: f.native(), Options: options})
		if err != nil || got != v {
			t.Errorf("formatting: %+v, %v; want %+v", got, err, v)
		}
		f.holds(t, v)
		f.made(t, 1, 1)
	}
}

func recordsWhatIsGivenRaw(t *testing.T, f fixture) {
	v := f.create(t, 1, filesystemUnits)
	r := provision.FormatRequest{ID: v.ID, Filesystem: provision.Raw}
	if f.Filesystem != "" { // it is no block device
		_, err := f.Provisioner.Format(t.Context(), r)
		wantError(t, err, provision.ErrConflict)
		return
	}
	v.Filesystem = provision.Raw
	for range 2 {
		if got, err := f.Provisioner.Format(t.Context(), r); err != nil || got != v {
			t.Errorf("recording: %+v, %v; want %+v", got, err, v)
		}
		f.holds(t, v)
	}
	f.isRaw(t, v)
	f.Provisioner = f.Restart()
	f.isRaw(t, v)
	f.delete(t, 1)
	if v := f.create(t, 1, filesystemUnits); v.Filesystem != "" {
		t.Errorf("a new volume inherited the record of the old: %+v", v)
	}
}

// isRaw fails unless the raw volume is unchanged, and requests for ext4 or xfs are refused.
func (f fixture) isRaw(t *testing.T, v provision.Volume) {
	t.Helper()
	f.holds(t, v)
	if again := f.create(t, 1, filesystemUnits); again != v {
		t.Errorf("asked for again: %+v; want %+v", again, v)
	}
	for _, filesystem := range []string{provision.Ext4, provision.XFS} {
		_, err := f.Provisioner.Format(t.Context(), provision.FormatRequest{ID: v.ID, Filesystem: filesystem})
		wantError(t, err, provision.ErrConflict)
	}
	f.made(t, 1, 0)
}

func formatConflict(t *testing.T, f fixture) {
	v := f.create(t, 1, filesystemUnits)
	f.format(t, 1, f.native())
	_, err := f.Provisioner.Format(t.Context(), provision.FormatRequest{ID: v.ID, Filesystem: provision.XFS})
	wantError(t, err, provision.ErrConflict)
	v.Filesystem = f.native()
	f.holds(t, v)
	f.made(t, 1, 1)
}

func formatAtOnce(t *testing.T, f fixture) {
	v := f.create(t, 1, filesystemUnits)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := f.Provisioner.Format(t.Context(), provision.FormatRequest{ID: v.ID, Filesystem: f.native()}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.made(t, 1, 1)
}

func formatsByRecord(t *testing.T, f fixture) {
	v := f.create(t, 1, filesystemUnits)
	f.format(t, 1, f.native())
	f.Scramble(v)
	f.format(t, 1, f.native())
	f.made(t, 1, 1)
	f.Provisioner = f.Restart()
	f.format(t, 1, f.native())
	f.made(t, 1, 1)
}

func blankAfterDelete(t *testing.T, f fixture) {
	f.create(t, 1, filesystemUnits)
	f.format(t, 1, f.native())
	f.delete(t, 1)
	if v := f.create(t, 1, filesystemUnits); v.Filesystem != "" {
		t.Errorf("a new volume inherited the record of the old: %+v", v)
	}
	f.format(t, 1, f.native())
	f.made(t, 1, 2)
}
