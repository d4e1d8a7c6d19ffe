package conformance

import (
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

func binds(t *testing.T, f fixture) {
	dev := f.Device(provision.Ext4)
	source := f.mount(t, dev, "staging")
	f.write(t, source+"/file", "shown")
	r := mount.BindRequest{Device: dev, Source: source, Target: f.at("pod/mount")}
	f.bind(t, r)
	f.holds(t, r.Target+"/file", "shown")
	f.bind(t, r)
	f.unmount(t, r.Target)
	f.holds(t, r.Target+"/file", "")
	f.holds(t, source+"/file", "shown")
}

func bindsNothing(t *testing.T, f fixture) {
	dev, other := f.Device(provision.Ext4), f.Device(provision.Ext4)
	ctx := t.Context()
	if err := mount.MakeDirectory(f.at("empty")); err != nil {
		t.Fatal(err)
	}
	wantError(t, f.Mounter.Bind(ctx, mount.BindRequest{Device: dev, Source: f.at("empty"), Target: f.at("pod")}), mount.ErrNotMounted)
	wantError(t, f.Mounter.Bind(ctx, mount.BindRequest{Device: dev, Source: f.at("missing"), Target: f.at("pod")}), mount.ErrNotMounted)
	source := f.mount(t, other, "staging")
	wantError(t, f.Mounter.Bind(ctx, mount.BindRequest{Device: dev, Source: source, Target: f.at("pod")}), mount.ErrNotMounted)
}

func bindsDevice(t *testing.T, f fixture) {
	r := mount.BindRequest{Device: f.Device(""), Target: f.at("pods/device")}
	f.bind(t, r)
	f.bind(t, r)
	other := r
	other.Device = f.Device("")
	wantError(t, f.Mounter.Bind(t.Context(), other), provision.ErrConflict)
	f.unmount(t, r.Target)
	f.bind(t, other)
}

func bindsReadOnly(t *testing.T, f fixture) {
	dev := f.Device(provision.Ext4)
	source := f.mount(t, dev, "staging")
	f.write(t, source+"/file", "shown")
	ro := mount.BindRequest{Device: dev, Source: source, Target: f.at("ro"), ReadOnly: true}
	rw := mount.BindRequest{Device: dev, Source: source, Target: f.at("rw")}
	f.bind(t, ro)
	f.bind(t, rw)
	f.bind(t, ro)
	f.write(t, rw.Target+"/file", "changed")
	f.holds(t, ro.Target+"/file", "changed")
	if f.Write != nil && f.Write(ro.Target+"/file", "forbidden") == nil {
		t.Error("the read-only bind can be written")
	}
	ro.ReadOnly = false
	wantError(t, f.Mounter.Bind(t.Context(), ro), provision.ErrConflict)
}
