//go:build platform

package linux_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/conformance"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

// devices are logical volumes of a group made for the test.
type devices struct {
	t       *testing.T
	mounter *linux.Mounter
	counter *runtest.Counter
	n       int
}

const group = "vg-mount"

func newDevices(t *testing.T) *devices {
	t.Helper()
	lvmtest.RealGroup(t, group, lvmtest.Disks(t, 1)[0])
	return devicesIn(t)
}

// devicesIn makes devices in a group that is there.
func devicesIn(t *testing.T) *devices {
	t.Helper()
	lvmtest.EmptyAfter(t, group)
	counter := runtest.Count(run.Exec{})
	m, err := linux.New(linux.Config{Runner: counter})
	if err != nil {
		t.Fatal(err)
	}
	return &devices{t: t, mounter: m, counter: counter}
}

func (d *devices) make(fs string) provision.Volume {
	d.t.Helper()
	d.n++
	name := fmt.Sprintf("lv-%d", d.n)
	lvmtest.LVM(d.t, "lvcreate", "--yes", "--size", "320m", "--name", name, group)
	v := lvmtest.RealVolume(d.t, group, name)
	v.Size = 320 << 20
	if fs != "" {
		if err := d.mounter.Mkfs(d.t.Context(), v, fs, ""); err != nil {
			d.t.Fatal(err)
		}
	}
	return v
}

// request returns a request for a device's filesystem at a target.
func request(v provision.Volume, fs, target string) mount.Request {
	return mount.Request{Content: v.Content, Target: target, Filesystem: fs}
}

func growth(v provision.Volume, fs, target string) mount.GrowRequest {
	return mount.GrowRequest{Content: v.Content, Target: target, Filesystem: fs}
}

func TestConformanceOnRealDevices(t *testing.T) {
	lvmtest.RealGroup(t, group, lvmtest.Disks(t, 1)[0])
	conformance.Run(t, func(t *testing.T) conformance.Harness {
		d := devicesIn(t)
		return conformance.Harness{
			Mounter: d.mounter,
			Device:  d.make,
			Enlarge: func(v provision.Volume) { lvmtest.LVM(t, "lvextend", "--yes", "--size", "+64m", v.Content.Source) },
			Hold: func(path string) func() {
				f, err := os.Create(path + "/held")
				if err != nil {
					t.Fatal(err)
				}
				return func() { f.Close() }
			},
			Write: func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) },
			Read: func(path string) (string, error) {
				b, err := os.ReadFile(path)
				return string(b), err
			},
		}
	})
}

func (d *devices) mount(v provision.Volume, fs, target string) {
	d.t.Helper()
	if err := d.mounter.Mount(d.t.Context(), request(v, fs, target)); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		if err := d.mounter.Unmount(context.WithoutCancel(d.t.Context()), target); err != nil {
			d.t.Error(err)
		}
	})
}

func TestMountsStartNoProcessUnlessTheyMust(t *testing.T) {
	d := newDevices(t)
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		device, target := d.make(fs), t.TempDir()+"/a"
		d.counter.Take()
		d.mount(device, fs, target)
		if err := d.mounter.Grow(t.Context(), growth(device, fs, target)); err != nil {
			t.Error(err)
		}
		if _, err := d.mounter.Stats(t.Context(), target); err != nil {
			t.Error(err)
		}
		if got := d.counter.Take(); len(got) != 0 {
			t.Errorf("mounting, growing what is large enough and figures of %s started %v", fs, got)
		}
		lvmtest.LVM(t, "lvextend", "--yes", "--size", "+64m", device.Content.Source)
		if err := d.mounter.Grow(t.Context(), growth(device, fs, target)); err != nil {
			t.Error(err)
		}
		if got := d.counter.Take(); len(got) != 1 {
			t.Errorf("growing %s started %v, want one process", fs, got)
		}
	}
}

func TestFilesystemThatWasNotUnmountedIsRepairedAndKeepsItsData(t *testing.T) {
	d := newDevices(t)
	for fs, processes := range map[string]int{provision.Ext4: 1, provision.XFS: 0} {
		device, crashed := d.make(fs), d.make("")
		target, again := t.TempDir()+"/a", t.TempDir()+"/b"
		d.mount(device, fs, target)
		if err := write(target+"/file", "kept"); err != nil {
			t.Fatal(err)
		}
		copyDevice(t, device.Content.Source, crashed.Content.Source) // as after a power loss: a filesystem in use
		if err := d.mounter.Unmount(t.Context(), target); err != nil {
			t.Fatal(err) // xfs refuses to mount two filesystems of one UUID at once
		}
		d.counter.Take()
		// The journal is replayed, also for a read-only mount.
		for _, readOnly := range []bool{true, false} {
			r := request(crashed, fs, again)
			r.ReadOnly = readOnly
			if err := d.mounter.Mount(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(again + "/file"); err != nil || string(b) != "kept" {
				t.Errorf("%s, read-only %v, holds %q, %v", fs, readOnly, b, err)
			}
			if err := write(again+"/new", "written"); (err != nil) != readOnly {
				t.Errorf("%s, read-only %v, is written: %v", fs, readOnly, err)
			}
			if err := d.mounter.Unmount(t.Context(), again); err != nil {
				t.Fatal(err)
			}
		}
		if got := d.counter.Take()["e2fsck"]; got != processes {
			t.Errorf("repairing %s started %d processes, want %d", fs, got, processes)
		}
	}
}

func TestACopyOfXFSIsMountedBesideItsSource(t *testing.T) {
	d := newDevices(t)
	device, copied := d.make(provision.XFS), d.make("")
	copyDevice(t, device.Content.Source, copied.Content.Source)
	d.mount(device, provision.XFS, t.TempDir()+"/a")
	r := request(copied, provision.XFS, t.TempDir()+"/b")
	if err := d.mounter.Mount(t.Context(), r); err == nil {
		t.Error("two filesystems of one UUID were mounted")
	}
	r.Options = []string{"nouuid"}
	if err := d.mounter.Mount(t.Context(), r); err != nil {
		t.Error(err)
	}
	if err := d.mounter.Unmount(t.Context(), r.Target); err != nil {
		t.Error(err)
	}
}

func TestDestroyedFilesystemIsAnErrorAndNeverMadeAnew(t *testing.T) {
	d := newDevices(t)
	for _, fs := range []string{provision.Ext4, provision.XFS} {
		for name, size := range map[string]int{"the beginning": 4 << 10, "the first part": 64 << 20} {
			device := d.make(fs)
			lvmtest.Overwrite(t, device.Content.Source, size)
			d.counter.Take()
			err := d.mounter.Mount(t.Context(), request(device, fs, t.TempDir()+"/a"))
			if !errors.Is(err, mount.ErrCorrupt) {
				t.Errorf("%s without %s: %v, want ErrCorrupt", fs, name, err)
			}
			if got := d.counter.Take(); got["mkfs."+fs] != 0 {
				t.Errorf("%s without %s was made anew", fs, name)
			}
		}
	}
}

func TestMountedDeviceIsNotFormatted(t *testing.T) {
	d := newDevices(t)
	device := d.make(provision.Ext4)
	d.mount(device, provision.Ext4, t.TempDir()+"/a")
	if err := d.mounter.Mkfs(t.Context(), device, provision.Ext4, ""); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("got %v, want ErrInUse", err)
	}
}

func write(path, text string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		return err
	}
	return f.Sync()
}

func copyDevice(t *testing.T, from, to string) {
	t.Helper()
	src, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Close()
	if _, err := io.Copy(dst, src); err != nil {
		t.Fatal(err)
	}
	if err := dst.Sync(); err != nil {
		t.Fatal(err)
	}
}
