//go:build platform

package btrfs_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/provision/btrfs/kernel"
)

// written are disks that pods wrote: a later filesystem of the UUID and label of the one on a disk. udev makes them known
// to the kernel, as it does with all filesystems of btrfs. It is on two disks, because later kernels look for a
// filesystem of one disk only there.
func written(t *testing.T, disks []string, fsid string) (nodes []string) {
	t.Helper()
	nodes = []string{btrfstest.Disk(t, btrfstest.Size), btrfstest.Disk(t, btrfstest.Size)}
	kept := t.TempDir()
	for i, disk := range disks {
		btrfstest.Run(t, "btrfs", "device", "scan", "--forget", disk)
		btrfstest.Run(t, "dd", "if="+disk, "of="+filepath.Join(kept, fmt.Sprint(i)), "bs=128K", "count=1", "status=none")
		btrfstest.Run(t, "dd", "if=/dev/zero", "of="+disk, "bs=128K", "count=1", "conv=notrunc", "status=none") // mkfs wants a UUID of its own
	}
	btrfstest.Run(t, "mkfs.btrfs", "-q", "-L", "made", "-U", fsid, nodes[0], nodes[1])
	top := t.TempDir()
	btrfstest.Run(t, "mount", nodes[0], top)
	for range 40 {
		btrfstest.Run(t, "touch", filepath.Join(top, "file"))
		btrfstest.Run(t, "btrfs", "filesystem", "sync", top)
	}
	btrfstest.Run(t, "umount", top)
	for _, node := range nodes {
		btrfstest.Run(t, "btrfs", "device", "scan", "--forget", node)
	}
	for i, disk := range disks {
		btrfstest.Run(t, "dd", "if="+filepath.Join(kept, fmt.Sprint(i)), "of="+disk, "bs=128K", "conv=notrunc", "status=none")
	}
	for _, node := range nodes {
		btrfstest.Run(t, "btrfs", "device", "scan", node)
	}
	return nodes
}

func TestAFilesystemThatAPodWroteIsNoPoolInPlaceOfTheNodes(t *testing.T) {
	b := newBare(t)
	b.ensure(provision.PoolWish{Disks: []string{b.plug(), b.plug()}}, provision.PoolMade)
	v, err := b.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: made, Size: 64 * mebibyte, Tree: provision.Subvolume})
	if err != nil {
		t.Fatal(err)
	}
	fsid, disks := b.fsid(), b.shelf.nodes
	b.stop()
	theirs := written(t, disks, fsid)
	b.restart()
	w := provision.PoolWish{Pool: made, Search: disks}
	if o, err := b.Ensure(t.Context(), w); err == nil || !strings.Contains(err.Error(), theirs[0]) || !strings.Contains(err.Error(), theirs[1]) {
		t.Errorf("it is %+v, %v", o, err)
	}
	if mounted, err := kernel.Mounted(); err != nil || len(mounted) > 0 {
		t.Fatalf("mounted are %v, %v", mounted, err)
	}
	b.ensure(w, provision.PoolImported) // what the pod wrote is not known to the kernel any more
	b.ensure(w, provision.PoolAsAsked)
	if got, err := b.Get(t.Context(), "pvc-1"); err != nil || got != v {
		t.Errorf("the volume is %+v, %v, and was %+v", got, err, v)
	}
}
