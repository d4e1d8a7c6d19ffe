package conformance

import (
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// part is how much of a filesystem each call trims.
const part = 128 << 20

func trims(t *testing.T, f fixture) {
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		dev := f.Device(fs)
		if err := f.Mounter.Mount(t.Context(), f.request(dev, fs, fs)); err != nil {
			t.Fatal(err)
		}
		f.write(t, f.at(fs)+"/file", "kept")
		whole := int64(0)
		for start, ended := int64(0), false; !ended; {
			got, err := f.Mounter.Trim(t.Context(), mount.TrimRequest{Content: dev.Content, Target: f.at(fs), Start: start, Length: part})
			if err != nil {
				t.Fatalf("trimming %s from %d: %v", fs, start, err)
			}
			whole, ended = whole+got.Bytes, got.Next == 0
			if !ended && (got.Next < start+part || got.Next >= dev.Size) || ended && start == 0 && dev.Size > 2*part {
				t.Fatalf("%s of %d bytes, trimmed from %d: the next part is at %d", fs, dev.Size, start, got.Next)
			}
			start = got.Next
		}
		if whole < 0 || whole > dev.Size {
			t.Errorf("%s of %d bytes has discarded %d: something twice", fs, dev.Size, whole)
		}
		f.holds(t, f.at(fs)+"/file", "kept")
		f.unmount(t, f.at(fs))
	}
}

func trimsNothing(t *testing.T, f fixture) {
	dev := f.Device(provision.Ext4)
	trim := func(change func(*mount.TrimRequest)) error {
		r := mount.TrimRequest{Content: dev.Content, Target: f.at("a"), Length: part}
		change(&r)
		_, err := f.Mounter.Trim(t.Context(), r)
		return err
	}
	same := func(*mount.TrimRequest) {}
	wantError(t, trim(same), mount.ErrNotMounted)
	if err := mount.MakeDirectory(f.at("a")); err != nil {
		t.Fatal(err)
	}
	wantError(t, trim(same), mount.ErrNotMounted) // else the disk of the machine itself would be trimmed
	wantError(t, trim(func(r *mount.TrimRequest) { r.Length = 0 }), provision.ErrInvalid)
	wantError(t, trim(func(r *mount.TrimRequest) { r.Start = -1 }), provision.ErrInvalid)
	wantError(t, trim(func(r *mount.TrimRequest) { r.Start, r.Length = 1, 1<<63-1 }), provision.ErrInvalid)
	wantError(t, trim(func(r *mount.TrimRequest) { r.Target = "a" }), provision.ErrInvalid)
	wantError(t, trim(func(r *mount.TrimRequest) { r.Content.Identity = "" }), provision.ErrInvalid)
	wantError(t, trim(func(r *mount.TrimRequest) {
		r.Content = provision.Content{Source: "tank/pvc-1", Tree: provision.Dataset}
	}), provision.ErrUnsupported)
	other := f.Device(provision.Ext4)
	f.mount(t, other, "a")
	wantError(t, trim(same), mount.ErrNotMounted)
	r := f.request(dev, "b", provision.Ext4)
	r.ReadOnly = true
	if err := f.Mounter.Mount(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	wantError(t, trim(func(r *mount.TrimRequest) { r.Target = f.at("b") }), provision.ErrUnsupported)
	f.unmount(t, f.at("b"))
}
