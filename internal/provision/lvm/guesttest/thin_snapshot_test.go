//go:build platform

package guesttest

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// mounted mounts a volume until the end of the test.
func mounted(t *testing.T, v provision.Volume) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := unix.Mount(v.Content.Source, dir, v.Filesystem, 0, ""); err != nil {
		t.Fatalf("mounting %+v: %v", v, err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func ofSnapshot(r provision.CreateRequest, id string) provision.CreateRequest {
	r.Source.Snapshot = id
	return r
}

func TestASnapshotOfAMountedFilesystemHoldsAllThatWasWrittenBeforeOnRealLVM(t *testing.T) {
	pool := thinPool(t, 512)
	c, _, _ := lvmtest.RealConfig(t)
	p, _ := lvmtest.Start(t, c)
	v := made(t, p, request(pool, "pvc-1", 64))
	v, err := p.Format(t.Context(), provision.FormatRequest{ID: v.ID, Filesystem: provision.Ext4})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(mounted(t, v), "file")
	if err := os.WriteFile(file, []byte("before"), 0o600); err != nil { // without a sync
		t.Fatal(err)
	}
	s, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: v.ID})
	if err != nil || s.Filesystem != provision.Ext4 {
		t.Fatalf("snapshot %+v, %v", s, err)
	}
	if err := os.WriteFile(file, []byte("after!"), 0o600); err != nil {
		t.Fatal(err)
	}
	restored := made(t, p, ofSnapshot(request(pool, "pvc-2", 96), s.ID))
	if restored.Size != 96*mib || restored.Copying {
		t.Errorf("restored %+v", restored)
	}
	if got, err := os.ReadFile(filepath.Join(mounted(t, restored), "file")); err != nil || string(got) != "before" {
		t.Errorf("restored %q, %v", got, err)
	}
	if _, err := blockdev.Number("/dev/vg-berth/snap-1"); err == nil {
		t.Error("the snapshot was activated")
	}
}

func TestTheLeftoversOfADeadProcessAreMendedOnRealLVM(t *testing.T) {
	pool := thinPool(t, 512)
	c, _, _ := lvmtest.RealConfig(t)
	p, stop := lvmtest.Start(t, c)
	made(t, p, request(pool, "pvc-1", 64))
	stop()
	// As if a process died between the two steps of a copy, and another while it took a snapshot.
	lvmtest.LVM(t, "lvcreate", "--yes", "--snapshot", "--setactivationskip", "n", "--name", "pvc-2", "--addtag", "berth.dev/volume=pvc-2",
		"--addtag", "berth.dev/source=pvc-1", "--addtag", "berth.dev/size=134217728", "vg-berth/pvc-1")
	if _, err := (run.Exec{}).Change(run.Command{Operation: "suspend", Program: "dmsetup", Args: []string{"suspend", "vg--berth-pvc--1"}}); err != nil {
		t.Fatal(err)
	}
	p, _ = lvmtest.Start(t, c)
	lvmtest.Eventually(t, func() bool {
		v, err := p.Get(t.Context(), "pvc-2")
		return err == nil && v.Size == 128*mib && !v.Copying
	}, "what was left too small is not extended")
	v, err := p.Get(t.Context(), "pvc-1") // whose node the machine's udev may have removed
	if err != nil {
		t.Fatal(err)
	}
	if err := overwrite(v.Content.Source, 1*mib); err != nil { // which would wait for ever on a suspended device
		t.Error(err)
	}
}
