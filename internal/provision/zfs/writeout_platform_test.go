//go:build platform

package zfs_test

import (
	"os"
	"path/filepath"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

// restored takes a snapshot of a volume and returns a copy of that.
func restored(t *testing.T, p *zfs.Provisioner, v provision.Volume, id string) provision.Volume {
	t.Helper()
	if _, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-" + id, Volume: v.ID}); err != nil {
		t.Fatal(err)
	}
	copied, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-" + id, Pool: v.Pool, Size: v.Size, Source: provision.Source{Snapshot: "snap-" + id}})
	if err != nil {
		t.Fatal(err)
	}
	return copied
}

func mounted(t *testing.T, device string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	zfstest.Run(t, "mount", device, dir)
	t.Cleanup(func() { zfstest.Run(t, "umount", dir) })
	return dir
}

func TestASnapshotHasAllDataWrittenToAFilesystemOnRealZFS(t *testing.T) {
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	pool := zfstest.RealPool(t, parent)
	c, _, _ := zfstest.RealConfig(t)
	p, _ := start(t, c)
	v, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-files", Pool: pool, Size: 64 << 20})
	if err == nil {
		v, err = p.Format(t.Context(), provision.FormatRequest{ID: v.ID, Filesystem: provision.Ext4})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(mounted(t, v.Content.Source), "file"), []byte("just now"), 0o600); err != nil {
		t.Fatal(err)
	}
	copied := restored(t, p, v, "later")
	if got, err := os.ReadFile(filepath.Join(mounted(t, copied.Content.Source), "file")); err != nil || string(got) != "just now" {
		t.Errorf("the copy has %q, %v", got, err)
	}
}

func TestASnapshotHasAllDataWrittenToADeviceOnRealZFS(t *testing.T) {
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	pool := zfstest.RealPool(t, parent)
	c, _, _ := zfstest.RealConfig(t)
	p, _ := start(t, c)
	v, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-disk", Pool: pool, Size: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(v.Content.Source, os.O_WRONLY, 0) // closing it would write it out
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString("just now"); err != nil {
		t.Fatal(err)
	}
	if got := blockdevtest.ReadAt(t, restored(t, p, v, "later").Content.Source, 8, 0); got != "just now" {
		t.Errorf("the copy has %q", got)
	}
}
