//go:build platform

package btrfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/run"
)

// unnamed returns a provisioner that no class was told to, and a function that says which
// filesystems it opened.
func unnamed(t *testing.T, open func(fsid string, changes bool) (btrfs.Filesystem, error)) (p *btrfs.Provisioner, opened func() []string) {
	t.Helper()
	all := make(chan string, 100)
	p, err := btrfs.New(btrfs.Config{Runner: run.Exec{}, Open: func(fsid string, changes bool) (btrfs.Filesystem, error) {
		all <- fsid
		return open(fsid, changes)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Wait)
	return p, func() (fsids []string) {
		for len(all) > 0 {
			fsids = append(fsids, <-all)
		}
		return fsids
	}
}

func really(fsid string, changes bool) (btrfs.Filesystem, error) { return kernel.Open(fsid, changes) }

func TestAFilesystemThatNoClassNamesIsLeftAloneAndHoldsUpNothing(t *testing.T) {
	f := btrfstest.New(t, "theirs", btrfstest.Size)
	f.Put(".berth/trash/pvc-1/theirs", mebibyte)
	broken := errors.New("it does not answer")
	p, opened := unnamed(t, func(string, bool) (btrfs.Filesystem, error) { return nil, broken })
	for range 2 {
		if pools, err := p.Report(t.Context()); err != nil || len(pools) > 0 {
			t.Errorf("reported are %+v, %v", pools, err)
		}
		_, err := p.Get(t.Context(), "pvc-1")
		fails(t, "a volume of another pool", err, provision.ErrNotFound)
	}
	p.Wait()
	if all := opened(); len(all) > 0 {
		t.Errorf("opened were %v", all)
	}
	if err := p.Healthy(); err != nil {
		t.Error(err)
	}
	if o, err := p.Ensure(t.Context(), provision.PoolWish{Pool: f.Ref}); err != nil || o.Reason != provision.PoolForeign {
		t.Errorf("naming it: %+v, %v", o, err)
	}
	if pools, err := p.Report(t.Context()); err != nil || len(pools) != 1 || pools[0].PoolRef != f.Ref || !slices.Contains(opened(), f.FSID) {
		t.Errorf("once a class names it, reported are %+v, %v", pools, err)
	}
	_, err := p.Get(t.Context(), "pvc-1")
	fails(t, "a volume that may be in it", err, provision.ErrUnavailable)
}

func TestWhatBerthMadeIsKnownBeforeAClassNamesItsFilesystem(t *testing.T) {
	n := newNode(t, "data")
	v := n.mustCreate("pvc-1", 32, provision.Source{})
	if _, err := n.p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"}); err != nil {
		t.Fatal(err)
	}
	n.stop()
	p, _ := unnamed(t, really)
	if got, err := p.Get(t.Context(), "pvc-1"); err != nil || got != v {
		t.Errorf("the volume is %+v, %v, and was %+v", got, err, v)
	}
	if err := p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Fatal(err)
	}
	n.start()
	n.await("the trash to be empty", func(p provision.Pool) bool { return len(p.Wiping) == 0 && n.left("trash") == "" })
	n.stop()
	p, _ = unnamed(t, really)
	if s, err := p.GetSnapshot(t.Context(), "snap-1"); err != nil || s.Problem != "" {
		t.Errorf("the snapshot is %+v, %v", s, err)
	}
}

func TestTheMarkComesBackWithTheQuotas(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 32, provision.Source{})
	btrfstest.Run(t, "btrfs", "quota", "disable", n.Top)
	n.count()
	if kernel.Marked(n.FSID) {
		t.Fatal("the mark outlives the quotas")
	}
	n.restart()
	n.await("the mark", func(provision.Pool) bool { return kernel.Marked(n.FSID) })
}

func TestNothingIsTidiedWhileTwoFilesystemsHaveOneLabel(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 32, provision.Source{})
	n.stop()
	n.Put(".berth/making/pvc-2/data/file", mebibyte)
	if err := os.RemoveAll(filepath.Join(n.Top, ".berth/making/pvc-2/data")); err != nil {
		t.Fatal(err)
	}
	other := btrfstest.New(t, "data", btrfstest.Size)
	p, _ := unnamed(t, really)
	if pools, err := p.Report(t.Context()); err != nil || len(pools) != 1 || !strings.Contains(pools[0].Problem, "are all labelled data") {
		t.Errorf("reported are %+v, %v", pools, err)
	}
	p.Wait()
	if left := n.left("making"); left != "making/pvc-2 " {
		t.Errorf("left is %q", left)
	}
	other.Unmount()
	n.start()
	n.await("it to be tidied", func(provision.Pool) bool { return n.left("making") == "" })
}

// A node may be gone though its disk is there.
func TestAFilesystemIsReadByAnyOfItsDisks(t *testing.T) {
	disks := []string{btrfstest.Disk(t, btrfstest.Size), btrfstest.Disk(t, btrfstest.Size)}
	f := btrfstest.On(t, "data", disks[0])
	btrfstest.Run(t, "btrfs", "device", "add", disks[1], f.Top)
	n := newNodeOn(t, f)
	for _, disk := range disks {
		if err := os.Rename(disk, disk+"-away"); err != nil {
			t.Fatal(err)
		}
		back := func() { _ = os.Rename(disk+"-away", disk) }
		t.Cleanup(back)
		if p := n.restartAndRead(); p.Problem != "" {
			t.Errorf("without %s: %s", disk, p.Problem)
		}
		back()
	}
}
