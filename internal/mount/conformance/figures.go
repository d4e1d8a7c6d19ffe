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
		if err := f.Mounter.Mount(t.Context(), mount.Request{Device: dev, Target: target, Filesystem: fs}); err != nil {
			t.Fatal(err)
		}
		f.write(t, target+"/file", "kept")
		before, size := f.stats(t, target), f.size(t, dev)
		f.Enlarge(dev)
		if now := f.size(t, dev); now != size+64<<20 {
			t.Errorf("the device went from %d to %d bytes, want 64 MiB more", size, now)
		}
		for range 2 {
			if err := f.Mounter.Grow(t.Context(), mount.GrowRequest{Device: dev, Target: target, Filesystem: fs}); err != nil {
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

func growsNothing(t *testing.T, f fixture) {
	r := mount.GrowRequest{Device: f.Device(provision.Ext4), Target: f.at("a"), Filesystem: provision.Ext4}
	wantError(t, f.Mounter.Grow(t.Context(), r), mount.ErrNotMounted)
}

func stats(t *testing.T, f fixture) {
	dev := f.Device(provision.Ext4)
	s, size := f.stats(t, f.mount(t, dev, "a")), f.size(t, dev)
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
	// The figures of the root disk would pass for the volume's.
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

func (f fixture) size(t *testing.T, device string) int64 {
	t.Helper()
	size, err := f.Mounter.DeviceSize(t.Context(), device)
	if err != nil {
		t.Fatalf("size of %s: %v", device, err)
	}
	return size
}
