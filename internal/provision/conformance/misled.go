package conformance

import (
	"testing"

	"berth.dev/berth/internal/provision"
)

// A device node or a link may outlive its device and lead to another one by now. Each operation
// on a volume uses the volume's own device, or it fails.

func misled(t *testing.T, f fixture) {
	if f.Mislead == nil || f.Filesystem != "" { // ZFS mounts a dataset by its name
		return
	}
	f.keepApart(t, f.create(t, 1, filesystemUnits), f.create(t, 2, filesystemUnits))
}

func misledWhole(t *testing.T, f fixture) {
	if f.Mislead == nil {
		return
	}
	v := f.create(t, 1, 1)
	f.keepApart(t, v, f.on(t, 1).create(t, 2, 1))
}

// keepApart misleads the path of a blank volume, and fails if an operation on that volume
// changes the other one.
func (f fixture) keepApart(t *testing.T, v, other provision.Volume) {
	t.Helper()
	const secret = "the other volume's"
	unharmed := func(after string) {
		t.Helper()
		if got := f.Read(other, len(secret)); got != secret {
			t.Errorf("after %s the other volume holds %q", after, got)
		}
	}
	f.Write(other, secret)
	for _, restart := range []bool{false, true} {
		f.Mislead(v, other)
		if restart {
			f.Provisioner = f.Restart()
		}
		if got := f.get(t, 1); got.Problem == "" {
			const own = "its own, and nobody else's"
			f.Write(got, own)
			if shown := f.Read(got, len(own)); shown != own {
				t.Errorf("it is said to be usable and holds %q", shown)
			}
		}
		unharmed("it was written")
	}
	f.Mislead(v, other)
	if _, err := f.Provisioner.Format(t.Context(), provision.FormatRequest{ID: v.ID, Filesystem: provision.Ext4}); err != nil {
		wantError(t, err, provision.ErrUnavailable)
	}
	unharmed("it was formatted")
	f.Mislead(v, other)
	f.delete(t, 1)
	unharmed("it was deleted")
}
