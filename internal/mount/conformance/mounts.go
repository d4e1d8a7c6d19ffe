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
	r := mount.Request{Device: f.Device(provision.XFS), Target: f.at("x"), Filesystem: provision.XFS, Options: []string{"noatime", "logbsize=64k"}}
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
	target := f.mount(t, f.Device(provision.Ext4), "a")
	other := f.Device(provision.Ext4)
	err := f.Mounter.Mount(t.Context(), mount.Request{Device: other, Target: target, Filesystem: provision.Ext4})
	wantError(t, err, provision.ErrConflict)
}

func corrupt(t *testing.T, f fixture) {
	blank := mount.Request{Device: f.Device(""), Target: f.at("a"), Filesystem: provision.Ext4}
	wantError(t, f.Mounter.Mount(t.Context(), blank), mount.ErrCorrupt)
	blank.Filesystem = provision.XFS
	wantError(t, f.Mounter.Mount(t.Context(), blank), mount.ErrCorrupt)
	_, err := f.Mounter.Stats(t.Context(), blank.Target)
	if err == nil {
		t.Error("something is mounted")
	}
}

func noDevice(t *testing.T, f fixture) {
	ctx, missing := t.Context(), "/dev/berth/none"
	wantError(t, f.Mounter.Mount(ctx, mount.Request{Device: missing, Target: f.at("a"), Filesystem: provision.Ext4}), provision.ErrNotFound)
	wantError(t, f.Mounter.Bind(ctx, mount.BindRequest{Device: missing, Target: f.at("b")}), provision.ErrNotFound)
	_, err := f.Mounter.DeviceSize(ctx, missing)
	wantError(t, err, provision.ErrNotFound)
}

func invalid(t *testing.T, f fixture) {
	ctx, m := t.Context(), f.Mounter
	dev := f.Device(provision.Ext4)
	wantError(t, m.Mount(ctx, mount.Request{Device: dev, Target: "relative", Filesystem: provision.Ext4}), provision.ErrInvalid)
	wantError(t, m.Mount(ctx, mount.Request{Device: dev, Target: f.at("a"), Filesystem: "vfat"}), provision.ErrInvalid)
	wantError(t, m.Mount(ctx, mount.Request{Device: dev, Target: f.at("a"), Filesystem: provision.Ext4, Options: []string{"noatime,suid"}}), provision.ErrInvalid)
	wantError(t, m.Bind(ctx, mount.BindRequest{Device: dev, Source: "x", Target: f.at("a")}), provision.ErrInvalid)
	wantError(t, m.Unmount(ctx, "/a/../b"), provision.ErrInvalid)
	wantError(t, m.Grow(ctx, mount.GrowRequest{Device: dev, Target: "", Filesystem: provision.Ext4}), provision.ErrInvalid)
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
	wantError(t, f.Mounter.Mount(ctx, mount.Request{Device: dev, Target: f.at("a"), Filesystem: provision.Ext4}), context.Canceled)
	wantError(t, f.Mounter.Unmount(ctx, f.at("a")), context.Canceled)
	if _, err := os.Stat(f.at("a")); err == nil {
		t.Error("a mount point was made")
	}
}
