package conformance

import (
	"sync"
	"testing"

	"berth.dev/berth/internal/provision"
)

// filesystemUnits is room enough for ext4 in units of 4 MiB.
const filesystemUnits = 8

func formatsOnce(t *testing.T, f fixture) {
	v := f.create(t, 1, filesystemUnits)
	v.Filesystem = provision.Ext4
	for _, options := range []string{"-I 512 -E stride=4", "", "-I 1024"} { // those of the first count
		got, err := f.Provisioner.Format(t.Context(), provision.FormatRequest{ID: v.ID, Filesystem: provision.Ext4, Options: options})
		if err != nil || got != v {
			t.Errorf("formatting: %+v, %v; want %+v", got, err, v)
		}
		f.holds(t, v)
		if n := f.Formats(v.ID); n != 1 {
			t.Errorf("a filesystem was made %d times, want once", n)
		}
	}
}

func formatConflict(t *testing.T, f fixture) {
	v := f.create(t, 1, filesystemUnits)
	f.format(t, 1, provision.Ext4)
	_, err := f.Provisioner.Format(t.Context(), provision.FormatRequest{ID: v.ID, Filesystem: provision.XFS})
	wantError(t, err, provision.ErrConflict)
	v.Filesystem = provision.Ext4
	f.holds(t, v)
	if n := f.Formats(v.ID); n != 1 {
		t.Errorf("a filesystem was made %d times, want once", n)
	}
}

func formatAtOnce(t *testing.T, f fixture) {
	v := f.create(t, 1, filesystemUnits)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := f.Provisioner.Format(t.Context(), provision.FormatRequest{ID: v.ID, Filesystem: provision.Ext4}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := f.Formats(v.ID); n != 1 {
		t.Errorf("a filesystem was made %d times, want once", n)
	}
}

func formatsByRecord(t *testing.T, f fixture) {
	v := f.create(t, 1, filesystemUnits)
	f.format(t, 1, provision.Ext4)
	f.Scramble(v)
	f.format(t, 1, provision.Ext4)
	if n := f.Formats(v.ID); n != 1 {
		t.Errorf("a volume recorded as formatted was formatted again: %d times", n)
	}
	f.Provisioner = f.Restart()
	f.format(t, 1, provision.Ext4)
	if n := f.Formats(v.ID); n != 1 {
		t.Errorf("after a restart a volume recorded as formatted was formatted again: %d times", n)
	}
}

func blankAfterDelete(t *testing.T, f fixture) {
	f.create(t, 1, filesystemUnits)
	f.format(t, 1, provision.Ext4)
	f.delete(t, 1)
	if v := f.create(t, 1, filesystemUnits); v.Filesystem != "" {
		t.Errorf("a new volume inherited the record of the old: %+v", v)
	}
	f.format(t, 1, provision.Ext4)
	if n := f.Formats(id(1)); n != 2 {
		t.Errorf("a filesystem was made %d times for two volumes, want twice", n)
	}
}
