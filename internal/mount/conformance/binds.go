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
	r := f.binding(dev, source, "pod/mount")
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
	wantError(t, f.Mounter.Bind(ctx, f.binding(dev, f.at("empty"), "pod")), mount.ErrNotMounted)
	wantError(t, f.Mounter.Bind(ctx, f.binding(dev, f.at("missing"), "pod")), mount.ErrNotMounted)
	source := f.mount(t, other, "staging")
	wantError(t, f.Mounter.Bind(ctx, f.binding(dev, source, "pod")), mount.ErrNotMounted)
}

func bindsDevice(t *testing.T, f fixture) {
	r := f.binding(f.Device(""), "", "pods/device")
	f.bind(t, r)
	f.bind(t, r)
	other := f.binding(f.Device(""), "", "pods/device")
	wantError(t, f.Mounter.Bind(t.Context(), other), provision.ErrConflict)
	f.unmount(t, r.Target)
	f.bind(t, other)

	reader := other
	reader.Target, reader.ReadOnly = f.at("pods/reader"), true
	f.bind(t, reader)
	f.bind(t, reader)
	reader.ReadOnly = false
	wantError(t, f.Mounter.Bind(t.Context(), reader), provision.ErrConflict)
}

func labels(t *testing.T, f fixture) {
	if !f.Labels {
		return
	}
	const one, other = "u:r:t:s0:c1,c2", "u:r:t:s0:c1,c3"
	ctx, dev := t.Context(), f.Device(provision.Ext4)
	labelled := func(context string) mount.Request {
		r := f.request(dev, "staging", provision.Ext4)
		r.Options = []string{`context="` + context + `"`}
		return r
	}
	bound := func(name, context string) mount.BindRequest {
		r := f.binding(dev, f.at("staging"), name)
		r.Context = context
		return r
	}
	for range 2 {
		if err := f.Mounter.Mount(ctx, labelled(one)); err != nil {
			t.Fatal(err)
		}
		f.bind(t, bound("pod1", one))
	}
	f.bind(t, bound("pod2", ""))
	wantError(t, f.Mounter.Mount(ctx, labelled(other)), provision.ErrConflict)
	wantError(t, f.Mounter.Bind(ctx, bound("pod3", other)), provision.ErrConflict)
	wantError(t, f.Mounter.Bind(ctx, bound("pod1", other)), provision.ErrConflict)
	for _, name := range []string{"pod1", "pod2", "staging"} {
		f.unmount(t, f.at(name))
	}
	if err := f.Mounter.Mount(ctx, labelled(other)); err != nil {
		t.Errorf("another context once nobody uses the first: %v", err)
	}
	f.unmount(t, f.at("staging"))
}

func bindsReadOnly(t *testing.T, f fixture) {
	dev := f.Device(provision.Ext4)
	source := f.mount(t, dev, "staging")
	f.write(t, source+"/file", "shown")
	ro, rw := f.binding(dev, source, "ro"), f.binding(dev, source, "rw")
	ro.ReadOnly = true
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
