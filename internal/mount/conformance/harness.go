package conformance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// Harness is a mounter, with functions that make devices for it.
type Harness struct {
	Mounter mount.Mounter

	// Device makes a device of at least 32 MiB (ext4) or 300 MiB (xfs) with a
	// filesystem on it; an empty name leaves the device blank. The suite uses the path,
	// identity and size of the volume.
	Device func(filesystem string) provision.Volume

	// Enlarge makes a device 64 MiB larger.
	Enlarge func(v provision.Volume)

	// Hold keeps the filesystem at a path busy until release; nil if the mounter
	// has no busy mounts.
	Hold func(path string) (release func())

	// Write and Read access a file at a path on a mounted volume; nil if the mounter
	// stores no data.
	Write func(path, text string) error
	Read  func(path string) (string, error)

	// Labels says that the mounter supports SELinux contexts.
	Labels bool
}

// Run runs the suite; start is called for each test.
func Run(t *testing.T, start func(*testing.T) Harness) {
	for name, test := range map[string]func(*testing.T, fixture){
		"mounting makes the target and can be repeated":        mounts,
		"an xfs filesystem mounts":                             mountsXFS,
		"a target with a foreign mount is a conflict":          conflicts,
		"a device without the recorded filesystem is damaged":  corrupt,
		"a missing device is not found":                        noDevice,
		"a path that leads to another device is refused":       otherDevice,
		"bad paths and options are invalid":                    invalid,
		"a bind shows the volume and can be repeated":          binds,
		"a bind of an unmounted volume is refused":             bindsNothing,
		"a raw block volume is bound onto a file":              bindsDevice,
		"a read-only bind does not hinder a writable bind":     bindsReadOnly,
		"a filesystem bears one SELinux context at a time":     labels,
		"unmounting can be repeated and keeps the mount point": unmounts,
		"a busy mount is in use":                               busy,
		"a filesystem grows with its device while mounted":     grows,
		"a read-only filesystem grows once it is writable":     growsLater,
		"growing an unmounted volume is refused":               growsNothing,
		"a trim goes to the end of the filesystem by parts":    trims,
		"a trim of what cannot be trimmed is refused":          trimsNothing,
		"the figures describe the filesystem":                  stats,
		"figures of an unmounted volume are refused":           statsNothing,
		"a call of a caller that gave up changes nothing":      gone,
	} {
		t.Run(name, func(t *testing.T) { test(t, fixture{start(t), t.TempDir()}) })
	}
}

type fixture struct {
	Harness
	dir string
}

func (f fixture) at(name string) string { return filepath.Join(f.dir, name) }

// request returns a request for a device's filesystem at a name.
func (f fixture) request(v provision.Volume, name, filesystem string) mount.Request {
	return mount.Request{Content: v.Content, Target: f.at(name), Filesystem: filesystem}
}

// binding returns a request to bind a device, or its filesystem that is mounted at a source.
func (f fixture) binding(v provision.Volume, source, name string) mount.BindRequest {
	return mount.BindRequest{Content: v.Content, Source: source, Target: f.at(name)}
}

func (f fixture) mount(t *testing.T, v provision.Volume, name string) string {
	t.Helper()
	target := f.at(name)
	t.Cleanup(func() {
		if err := f.Mounter.Unmount(context.WithoutCancel(t.Context()), target); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	if err := f.Mounter.Mount(t.Context(), f.request(v, name, provision.Ext4)); err != nil {
		t.Fatalf("mounting %s: %v", v.Content.Source, err)
	}
	return target
}

func (f fixture) bind(t *testing.T, r mount.BindRequest) {
	t.Helper()
	t.Cleanup(func() {
		if err := f.Mounter.Unmount(context.WithoutCancel(t.Context()), r.Target); err != nil {
			t.Errorf("cleaning up: %v", err)
		}
	})
	if err := f.Mounter.Bind(t.Context(), r); err != nil {
		t.Fatalf("binding %+v: %v", r, err)
	}
}

func (f fixture) unmount(t *testing.T, target string) {
	t.Helper()
	if err := f.Mounter.Unmount(t.Context(), target); err != nil {
		t.Fatalf("unmounting %s: %v", target, err)
	}
}

// holds fails unless the file at path holds text; an empty text means no file.
func (f fixture) holds(t *testing.T, path, text string) {
	t.Helper()
	if f.Read == nil {
		return
	}
	got, err := f.Read(path)
	if text == "" && errors.Is(err, os.ErrNotExist) {
		return
	}
	if err != nil || got != text {
		t.Errorf("%s holds %q, %v; want %q", path, got, err, text)
	}
}

func (f fixture) write(t *testing.T, path, text string) {
	t.Helper()
	if f.Write == nil {
		return
	}
	if err := f.Write(path, text); err != nil {
		t.Fatalf("writing: %v", err)
	}
}

func wantError(t *testing.T, err, class error) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("got error %v, want one of class %q", err, class)
	}
}
