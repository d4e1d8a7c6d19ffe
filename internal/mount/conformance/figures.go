package conformance

import (
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func grows(t *testing.T, f fixture) {
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		dev := f.Device(fs)
		target := f.at(fs)
		if err := f.Mounter.Mount(t.Context(), f.request(dev, fs, fs)); err != nil {
			t.Fatal(err)
		}
		f.write(t, target+"/file", "kept")
		before := f.stats(t, target)
		f.Enlarge(dev)
		for range 2 {
			if err := f.Mounter.Grow(t.Context(), mount.GrowRequest{Content: dev.Content, Target: target, Filesystem: fs}); err != nil {
				t.Errorf("growing %s: %v", fs, err)
			}
		}
		if grown := f.stats(t, target).Total - before.Total; grown < 56<<20 {
			t.Errorf("%s grew by %d bytes, want nearly 64 MiB", fs, grown)
		}
		f.holds(t, target+"/file", "kept")
		f.unmount(t, target)
	}
}

func growsLater(t *testing.T, f fixture) {
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		dev := f.Device(fs)
		r := f.request(dev, fs, fs)
		grown := func(readOnly bool) int64 {
			r.ReadOnly = readOnly
			if err := f.Mounter.Mount(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			defer f.unmount(t, r.Target)
			if readOnly {
				f.Enlarge(dev)
			}
			before := f.stats(t, r.Target)
			if err := f.Mounter.Grow(t.Context(), mount.GrowRequest{Content: dev.Content, Target: r.Target, Filesystem: fs}); err != nil {
				t.Errorf("growing %s, read-only %v: %v", fs, readOnly, err)
			}
			return f.stats(t, r.Target).Total - before.Total
		}
		if by := grown(true); by != 0 {
			t.Errorf("%s grew by %d bytes while it was read-only", fs, by)
		}
		if by := grown(false); by < 56<<20 {
			t.Errorf("%s grew by %d bytes once it was writable, want nearly 64 MiB", fs, by)
		}
	}
}

func growsNothing(t *testing.T, f fixture) {
	dev := f.Device(provision.Ext4)
	r := mount.GrowRequest{Content: dev.Content, Target: f.at("a"), Filesystem: provision.Ext4}
	wantError(t, f.Mounter.Grow(t.Context(), r), mount.ErrNotMounted)
}

func stats(t *testing.T, f fixture) {
	dev := f.Device(provision.Ext4)
	s, size := f.stats(t, f.mount(t, dev, "a")), dev.Size
	if s.Total <= size/2 || s.Total > size || s.Available <= 0 || s.Used < 0 || s.Available+s.Used > s.Total {
		t.Errorf("figures %+v do not fit a device of %d bytes", s, size)
	}
	if s.Inodes <= 0 || s.InodesAvailable+s.InodesUsed != s.Inodes {
		t.Errorf("the inodes do not add up: %+v", s)
	}
}

func statsNothing(t *testing.T, f fixture) {
	_, err := f.Mounter.Stats(t.Context(), f.at("missing"))
	wantError(t, err, mount.ErrNotMounted)
	if err := mount.MakeDirectory(f.at("empty")); err != nil {
		t.Fatal(err)
	}
	// Otherwise the figures of the root disk would be taken for the volume's.
	_, err = f.Mounter.Stats(t.Context(), f.at("empty"))
	wantError(t, err, mount.ErrNotMounted)
}

func (f fixture) stats(t *testing.T, path string) mount.Stats {
	t.Helper()
	s, err := f.Mounter.Stats(t.Context(), path)
	if err != nil {
		t.Fatalf("figures of %s: %v", path, err)
	}
	return s
}
