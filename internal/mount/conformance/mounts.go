package conformance

import (
	"context"
	"os"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func mounts(t *testing.T, f fixture) {
	dev := f.Device(provision.Ext4)
	target := f.mount(t, dev, "deep/staging")
	f.write(t, target+"/file", "kept")
	f.mount(t, dev, "deep/staging")
	f.holds(t, target+"/file", "kept")
	if info, err := os.Stat(target); err != nil || !info.IsDir() {
		t.Errorf("the target is not a directory: %v", err)
	}
}

func mountsXFS(t *testing.T, f fixture) {
	r := f.request(f.Device(provision.XFS), "x", provision.XFS)
	r.Options = []string{"noatime", "logbsize=64k"}
	if err := f.Mounter.Mount(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	f.write(t, r.Target+"/file", "kept")
	f.unmount(t, r.Target)
	f.holds(t, r.Target+"/file", "")
	if err := f.Mounter.Mount(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	f.holds(t, r.Target+"/file", "kept")
	f.unmount(t, r.Target)
}

func conflicts(t *testing.T, f fixture) {
	f.mount(t, f.Device(provision.Ext4), "a")
	wantError(t, f.Mounter.Mount(t.Context(), f.request(f.Device(provision.Ext4), "a", provision.Ext4)), provision.ErrConflict)
}

func corrupt(t *testing.T, f fixture) {
	blank := f.request(f.Device(""), "a", provision.Ext4)
	wantError(t, f.Mounter.Mount(t.Context(), blank), mount.ErrCorrupt)
	blank.Filesystem = provision.XFS
	wantError(t, f.Mounter.Mount(t.Context(), blank), mount.ErrCorrupt)
	_, err := f.Mounter.Stats(t.Context(), blank.Target)
	if err == nil {
		t.Error("something is mounted")
	}
}

func noDevice(t *testing.T, f fixture) {
	missing := provision.Volume{Content: provision.Content{Source: "/dev/berth/none", Identity: "dm:none"}}
	wantError(t, f.Mounter.Mount(t.Context(), f.request(missing, "a", provision.Ext4)), provision.ErrNotFound)
	wantError(t, f.Mounter.Bind(t.Context(), f.binding(missing, "", "b")), provision.ErrNotFound)
}

// otherDevice uses a path that leads to another volume's device than the requested one.
func otherDevice(t *testing.T, f fixture) {
	ctx, asked, there := t.Context(), f.Device(provision.Ext4), f.Device(provision.Ext4)
	misled := asked
	misled.Content.Source = there.Content.Source
	wantError(t, f.Mounter.Mount(ctx, f.request(misled, "staging", provision.Ext4)), provision.ErrUnavailable)
	wantError(t, f.Mounter.Bind(ctx, f.binding(misled, "", "device")), provision.ErrUnavailable)
	source := f.mount(t, there, "a")
	f.write(t, source+"/file", "secret")
	wantError(t, f.Mounter.Bind(ctx, f.binding(misled, source, "pod")), provision.ErrUnavailable)
	grow := mount.GrowRequest{Content: misled.Content, Target: source, Filesystem: provision.Ext4}
	wantError(t, f.Mounter.Grow(ctx, grow), provision.ErrUnavailable)
	f.mount(t, asked, "staging")
	f.holds(t, f.at("staging")+"/file", "")
	for _, name := range []string{"device", "pod"} {
		if _, err := os.Stat(f.at(name)); err == nil {
			t.Errorf("a mount point was made for another volume: %s", name)
		}
	}
}

func invalid(t *testing.T, f fixture) {
	ctx, m := t.Context(), f.Mounter
	dev := f.Device(provision.Ext4)
	for _, spoil := range []func(*mount.Request){
		func(r *mount.Request) { r.Target = "relative" },
		func(r *mount.Request) { r.Filesystem = "vfat" },
		func(r *mount.Request) { r.Options = []string{"noatime,suid"} },
		func(r *mount.Request) { r.Content.Identity = "" },
	} {
		r := f.request(dev, "a", provision.Ext4)
		spoil(&r)
		wantError(t, m.Mount(ctx, r), provision.ErrInvalid)
	}
	wantError(t, m.Bind(ctx, f.binding(dev, "x", "a")), provision.ErrInvalid)
	wantError(t, m.Unmount(ctx, "/a/../b"), provision.ErrInvalid)
	wantError(t, m.Grow(ctx, mount.GrowRequest{Content: dev.Content, Filesystem: provision.Ext4}), provision.ErrInvalid)
	_, err := m.Stats(ctx, "x")
	wantError(t, err, provision.ErrInvalid)
	if _, err := os.Stat(f.at("a")); err == nil {
		t.Error("an invalid request made a mount point")
	}
}

func unmounts(t *testing.T, f fixture) {
	dev := f.Device(provision.Ext4)
	target := f.mount(t, dev, "a")
	f.write(t, target+"/file", "kept")
	for range 2 {
		f.unmount(t, target)
		f.holds(t, target+"/file", "")
	}
	if entries, err := os.ReadDir(target); err != nil || len(entries) != 0 {
		t.Errorf("the mount point holds %v, %v; want it empty", entries, err)
	}
	f.unmount(t, f.at("never/made"))
	f.mount(t, dev, "a")
	f.holds(t, target+"/file", "kept")
}

func busy(t *testing.T, f fixture) {
	target := f.mount(t, f.Device(provision.Ext4), "a")
	if f.Hold == nil {
		return
	}
	release := f.Hold(target)
	wantError(t, f.Mounter.Unmount(t.Context(), target), provision.ErrInUse)
	release()
	f.unmount(t, target)
}

func gone(t *testing.T, f fixture) {
	dev := f.Device(provision.Ext4)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, f.Mounter.Mount(ctx, f.request(dev, "a", provision.Ext4)), context.Canceled)
	wantError(t, f.Mounter.Unmount(ctx, f.at("a")), context.Canceled)
	if _, err := os.Stat(f.at("a")); err == nil {
		t.Error("a mount point was made")
	}
}
