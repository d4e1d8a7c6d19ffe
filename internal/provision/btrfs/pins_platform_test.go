//go:build platform

package btrfs_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/provision/btrfs/kernel"
)

// limits adds up the limits of all volumes.
func (n *node) limits() (sum int64) {
	n.t.Helper()
	quotas, err := kernel.Quotas(n.FSID)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, q := range quotas {
		sum += q.Limit
	}
	return sum
}

// fillSoon writes a file anew, once the kernel has freed what it held.
func (n *node) fillSoon(id string, size int64) {
	n.t.Helper()
	n.await("room in "+id, func(provision.Pool) bool { return n.fill(id, "file", 0, size) == nil })
}

func TestSnapshotsAreChargedWhatTheKernelLetsTheirVolumeTake(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 64, provision.Source{})
	for i := range int64(4) {
		n.fillSoon("pvc-1", 60)
		before := n.pool().Free
		snapshot, err := n.p.Snapshot(t.Context(), provision.SnapshotRequest{ID: fmt.Sprint("snap-", i), Volume: "pvc-1"})
		if err != nil {
			t.Fatal(err)
		}
		if snapshot.Allocated < 60*mebibyte || snapshot.Allocated > 64*mebibyte {
			t.Errorf("snapshot %d is charged %d bytes of a volume that takes 60 MiB and may take 64", i, snapshot.Allocated)
		}
		n.await("the limit to be what is charged", func(p provision.Pool) bool {
			return p.Free == before-snapshot.Allocated && p.Foreign == 0 && n.limits() == p.Total-p.Free
		})
	}
	n.fillSoon("pvc-1", 60)
	if p := n.restartAndRead(); p.Foreign != 0 || p.Total-p.Free > 5*64*mebibyte {
		t.Errorf("after all was written it is %+v", p)
	}
}

func TestAVolumeCanBeOverwrittenUntilItsSnapshotIsFreed(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 64, provision.Source{})
	n.fillSoon("pvc-1", 60)
	if _, err := n.p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"}); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(filepath.Join(n.Top, ".berth/snapshots/snap-1/data/file")) // the kernel frees nothing of it
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	n.fillSoon("pvc-1", 60)
	if err := n.p.DeleteSnapshot(t.Context(), "snap-1"); err != nil {
		t.Fatal(err)
	}
	n.restartAndRead()
	n.restart() // what was begun has ended
	if p := n.pool(); n.left("trash") == "" || n.limits() < 124*mebibyte || p.Total-p.Free < 120*mebibyte {
		t.Errorf("it holds %q, lets volumes take %d bytes, and is %+v", n.left("trash"), n.limits(), p)
	}
	n.fillSoon("pvc-1", 60)
	held.Close()
	n.await("the room of the snapshot", func(p provision.Pool) bool {
		return p.Free == p.Total-64*mebibyte && n.left("trash") == "" && n.limits() == 64*mebibyte
	})
	n.fillSoon("pvc-1", 60)
}

func TestACopyIsMadeOfTheSubvolumeOfTheRecordAlone(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 64, provision.Source{})
	n.stop()
	data := n.Data("pvc-1")
	var swaps atomic.Bool
	n.c.Open = func(fsid string, changes bool) (btrfs.Filesystem, error) {
		f, err := kernel.Open(fsid, changes)
		if changes && swaps.CompareAndSwap(true, false) { // after the facts were read
			btrfstest.Run(t, "mv", data, data+".old")
			btrfstest.Run(t, "btrfs", "subvolume", "snapshot", data+".old", data)
		}
		return f, err
	}
	n.start()
	n.pool()
	swaps.Store(true)
	if _, err := n.p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"}); err == nil {
		t.Error("a snapshot was taken of a subvolume that was put in place of the volume's")
	}
	if err := n.create("pvc-2", 64, provision.Source{Volume: "pvc-1"}); err == nil {
		t.Error("a clone was made of a subvolume that was put in place of the volume's")
	}
}

func TestQuotaGroupsOfAnAdministratorAreNotTakenForThoseOfVolumes(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 64, provision.Source{})
	theirs := filepath.Join(n.Top, "theirs")
	btrfstest.Run(t, "btrfs", "subvolume", "create", theirs) // the next to 256
	btrfstest.Run(t, "btrfs", "qgroup", "create", "2/7", n.Top)
	btrfstest.Run(t, "btrfs", "qgroup", "assign", "--no-rescan", "0/256", "2/7", n.Top)
	for id := 258; id < 300; id++ {
		btrfstest.Run(t, "btrfs", "qgroup", "create", fmt.Sprint("1/", id), n.Top)
		btrfstest.Run(t, "btrfs", "qgroup", "assign", "--no-rescan", "0/257", fmt.Sprint("1/", id), n.Top)
	}
	if err := n.create("pvc-2", 64, provision.Source{}); err == nil {
		t.Error("a volume was made whose limit counts what is not in it")
	}
	n.await("what was begun to be removed", func(provision.Pool) bool { return n.left("making") == "" })
	if groups := btrfstest.Run(t, "btrfs", "qgroup", "show", n.Top); strings.Count(groups, "\n1/") != 44 {
		t.Errorf("of 42 groups of an administrator, one of a volume and the mark are left %s", groups)
	}
	f, err := kernel.Open(n.FSID, false)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if counted, err := f.Counted(); err != nil || !slices.Equal(counted[256], []uint64{256}) {
		t.Errorf("the volume counts for %v, %v", counted[256], err)
	}
}

func TestNoQuotaGroupOfAVolumeIsLeftThoughOthersShareItsData(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 64, provision.Source{})
	btrfstest.Run(t, "btrfs", "subvolume", "create", n.Data("pvc-1")+"/own")
	for from, to := range map[string]string{"own/file": "one", "file": "two"} {
		if err := n.fill("pvc-1", from, 8, 8); err != nil {
			t.Fatal(err)
		}
		btrfstest.Run(t, "cp", "--reflink=always", filepath.Join(n.Data("pvc-1"), from), filepath.Join(n.Top, to))
	}
	if err := n.p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Fatal(err)
	}
	p := n.await("it to be removed", func(p provision.Pool) bool { return len(p.Wiping) == 0 && n.left("trash") == "" })
	quotas, err := kernel.Quotas(n.FSID)
	if err != nil || len(quotas) > 0 || p.Foreign < 16*mebibyte {
		t.Errorf("left are %v, %v; %d bytes are foreign", quotas, err, p.Foreign)
	}
}

func TestACopyNamesNoSubvolumeThatIsGone(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 64, provision.Source{})
	if err := n.fill("pvc-1", "file", 8, 8); err != nil {
		t.Fatal(err)
	}
	n.mustCreate("pvc-2", 64, provision.Source{Volume: "pvc-1"})
	if err := n.p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Fatal(err)
	}
	n.await("it to be removed", func(provision.Pool) bool { return n.left("trash") == "" })
	n.mustCreate("pvc-3", 64, provision.Source{Volume: "pvc-2"})
	text := make([]byte, 1<<16)
	length, err := unix.Getxattr(filepath.Dir(n.Data("pvc-3")), "trusted.berth.record", text)
	if err != nil || bytes.Contains(text[:length], []byte(`"256":`)) || !bytes.Contains(text[:length], []byte(`"257":`)) {
		t.Errorf("the record is %s, %v", text[:max(length, 0)], err)
	}
}
