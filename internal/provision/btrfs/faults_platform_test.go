//go:build platform

package btrfs_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/run"
)

func (n *node) mustCreate(id string, size int64, from provision.Source) provision.Volume {
	n.t.Helper()
	if err := n.create(id, size, from); err != nil {
		n.t.Fatal(err)
	}
	return n.mustGet(id)
}

func (n *node) mustGet(id string) provision.Volume {
	n.t.Helper()
	v, err := n.p.Get(n.t.Context(), id)
	if err != nil {
		n.t.Fatal(err)
	}
	return v
}

// fails fails unless an error is of a class.
func fails(t *testing.T, what string, err, class error) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Errorf("%s: %v, want %q", what, err, class)
	}
}

// fill writes to a volume until it has so many MiB more, and fails unless it gets to least.
func (n *node) fill(id, name string, least, most int64) error {
	n.t.Helper()
	written, err := n.Fill(filepath.Join(n.Data(id), name), most*mebibyte)
	if written < least*mebibyte {
		n.t.Errorf("volume %s takes %d bytes, %v; at least %d MiB were promised", id, written, err, least)
	}
	return err
}

func TestAllThatIsPromisedCanBeWritten(t *testing.T) {
	n := newNode(t, "data")
	n.Put("theirs", 100*mebibyte)
	free := n.restartAndRead().Free / mebibyte / 3 / 4 * 4
	for _, id := range []string{"pvc-1", "pvc-2", "pvc-3"} {
		n.mustCreate(id, free, provision.Source{})
	}
	for _, id := range []string{"pvc-1", "pvc-2", "pvc-3"} {
		fails(t, "filling "+id, n.fill(id, "file", free-2, free+8), unix.EDQUOT)
	}
	if err := os.WriteFile(filepath.Join(n.Top, "theirs2"), []byte(strings.Repeat("a", mebibyte)), 0o600); err != nil {
		t.Errorf("nothing is left for the filesystem itself: %v", err)
	}
	fails(t, "one more volume", n.create("pvc-4", 64, provision.Source{}), provision.ErrNoSpace)
}

func (n *node) restartAndRead() provision.Pool {
	n.t.Helper()
	n.restart()
	return n.pool()
}

func TestAFullVolumeHoldsUpNobodyAndCanGrowAndGo(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 32, provision.Source{})
	n.mustCreate("pvc-2", 32, provision.Source{})
	fails(t, "filling it", n.fill("pvc-1", "file", 30, 64), unix.EDQUOT)
	if err := n.fill("pvc-2", "file", 24, 24); err != nil {
		t.Error(err)
	}
	if _, err := n.p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: 64 * mebibyte}); err != nil {
		t.Fatal(err)
	}
	if err := n.fill("pvc-1", "more", 24, 24); err != nil {
		t.Error(err)
	}
	fails(t, "filling it again", n.fill("pvc-1", "rest", 1, 64), unix.EDQUOT)
	if err := n.p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Fatal(err)
	}
	n.await("its room", func(p provision.Pool) bool { return p.Free == p.Total-32*mebibyte && len(p.Wiping) == 0 })
}

func TestAVolumeCanBeOverwrittenThoughCopiesKeepWhatItHeld(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 64, provision.Source{})
	if err := n.fill("pvc-1", "file", 60, 60); err != nil {
		t.Fatal(err)
	}
	whole := n.pool().Free
	if _, err := n.p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"}); err != nil {
		t.Fatal(err)
	}
	n.mustCreate("pvc-2", 64, provision.Source{Volume: "pvc-1"})
	n.mustCreate("pvc-3", 64, provision.Source{Snapshot: "snap-1"})
	for _, id := range []string{"pvc-1", "pvc-2", "pvc-3"} {
		n.await("its limit", func(provision.Pool) bool {
			return n.fill(id, "file", 0, 60) == nil
		})
	}
	if taken := whole - n.pool().Free; taken < 5*60*mebibyte {
		t.Errorf("%d bytes are charged for three volumes and what they began with, which are 300 MiB on the disk", taken)
	}
	if err := n.p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Fatal(err)
	}
	n.await("the trash to be empty", func(p provision.Pool) bool { return len(p.Wiping) == 0 })
	if taken := n.pool(); taken.Foreign < 56*mebibyte {
		t.Errorf("the snapshot keeps 60 MiB of the volume that was deleted, and %d bytes are foreign", taken.Foreign)
	}
	for _, id := range []string{"pvc-2", "pvc-3"} {
		if err := n.p.Delete(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if err := n.p.DeleteSnapshot(t.Context(), "snap-1"); err != nil {
		t.Fatal(err)
	}
	n.await("all room", func(p provision.Pool) bool { return p.Free == p.Total && len(p.Wiping) == 0 && n.left("trash") == "" })
}

// A tenant is root in its volume, but not on the node.
func TestATenantCannotEvadeItsLimitNorKeepItsVolume(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 64, provision.Source{})
	data := n.Data("pvc-1")
	btrfstest.Run(t, "btrfs", "subvolume", "create", filepath.Join(data, "own"))
	btrfstest.Run(t, "btrfs", "subvolume", "create", filepath.Join(data, "own/inner"))
	btrfstest.Run(t, "btrfs", "subvolume", "snapshot", "-r", data, filepath.Join(data, "own/copy"))
	victim := n.mustCreate("pvc-2", 64, provision.Source{})
	of, err := os.Open(n.Data(victim.ID))
	if err != nil {
		t.Fatal(err)
	}
	defer of.Close()
	var st unix.Statx_t
	if err := unix.Statx(int(of.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_SUBVOL, &st); err != nil {
		t.Fatal(err)
	}
	btrfstest.Run(t, "btrfs", "subvolume", "create", "-i", fmt.Sprintf("1/%d", st.Subvol), filepath.Join(data, "hidden")) // counted for another
	for _, dir := range []string{".berth/volumes/pvc-1", "data"} {
		if err := os.MkdirAll(filepath.Join(data, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"", "data"} {
		if err := unix.Setxattr(filepath.Join(data, dir), "trusted.berth.record", []byte(`{"ID":"pvc-1","Size":1}`), 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := n.Fill(filepath.Join(data, "hidden/file"), 32*mebibyte); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Fill(filepath.Join(data, "own/inner/file"), 128*mebibyte); !errors.Is(err, unix.EDQUOT) {
		t.Errorf("a subvolume within takes what it likes: %v", err)
	}
	n.await("all subvolumes to be counted", func(provision.Pool) bool {
		_, err := n.Fill(filepath.Join(data, "hidden/more"), mebibyte)
		return errors.Is(err, unix.EDQUOT)
	})
	if err := n.fill(victim.ID, "file", 48, 48); err != nil {
		t.Errorf("what one tenant wrote counts for another: %v", err)
	}
	if v := n.mustGet("pvc-1"); v.Size != 64*mebibyte || v.Problem != "" {
		t.Errorf("the volume is %+v", v)
	}
	if _, err := n.p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: 128 * mebibyte}); err != nil {
		t.Fatal(err)
	}
	btrfstest.Run(t, "chattr", "+i", filepath.Join(data, "own/inner"), filepath.Join(data, "own/inner/file"))
	btrfstest.Run(t, "chattr", "+a", filepath.Join(data, "own"))
	btrfstest.Run(t, "chattr", "+i", data)
	if err := n.p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Fatal(err)
	}
	n.await("all to be removed", func(p provision.Pool) bool { return len(p.Wiping) == 0 && n.left("trash") == "" })
	f, err := kernel.Open(n.FSID, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if roots, err := f.Roots(); err != nil || len(roots) != 1 {
		t.Errorf("subvolumes %+v, %v", roots, err)
	}
}

func TestAFilesystemThatGoesKeepsItsVolumes(t *testing.T) {
	n := newNode(t, "data")
	v := n.mustCreate("pvc-1", 32, provision.Source{})
	n.Unmount()
	n.await("it to be missed", func(p provision.Pool) bool {
		return len(p.Volumes) == 1 && p.Volumes[0].Problem != "" && p.Problem != ""
	})
	fails(t, "deleting", n.p.Delete(t.Context(), "pvc-1"), provision.ErrPoolMissing)
	fails(t, "creating", n.create("pvc-2", 32, provision.Source{}), provision.ErrPoolMissing)
	fails(t, "making it again", n.create("pvc-1", 32, provision.Source{}), provision.ErrPoolMissing)
	n.Mount()
	n.await("it to be back", func(p provision.Pool) bool { return p.Problem == "" })
	if got := n.mustGet("pvc-1"); got != v {
		t.Errorf("it is %+v, and was %+v", got, v)
	}
}

func TestAFilesystemInPlaceOfOneThatWentHasNoneOfItsVolumes(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 32, provision.Source{})
	n.Unmount()
	other := &node{Filesystem: btrfstest.New(t, "data", btrfstest.Size), t: t}
	other.count()
	n.await("the other", func(p provision.Pool) bool {
		return p.Problem == "" && len(p.Volumes) == 1 && p.Volumes[0].Problem != ""
	})
	fails(t, "deleting", n.p.Delete(t.Context(), "pvc-1"), provision.ErrPoolMissing)
	fails(t, "making it a second time", n.create("pvc-1", 32, provision.Source{}), provision.ErrUnavailable)
	n.mustCreate("pvc-2", 32, provision.Source{})
	if other.left("volumes") != "volumes/pvc-2 " {
		t.Errorf("in it are %s", other.left("volumes"))
	}
}

func TestACopyOfADiskIsNotTakenForItsFilesystem(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 32, provision.Source{})
	disk, top := btrfstest.Disk(t, btrfstest.Size), t.TempDir()
	n.Unmount()
	btrfstest.Run(t, "cp", "--sparse=always", "--no-preserve=all", "/dev/null", filepath.Join(top, "x"))
	btrfstest.Run(t, "dd", "if="+n.Disk, "of="+disk, "bs=1M", "conv=sparse", "status=none")
	n.Mount()
	if err := unix.Mount(disk, top, "btrfs", 0, ""); err != nil { // with a UUID that the kernel makes up
		t.Fatal(err)
	}
	mounted := true
	unmount := func() {
		if mounted {
			mounted = false
			if err := unix.Unmount(top, 0); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(unmount)
	n.await("the copy to be noticed", func(p provision.Pool) bool { return strings.Contains(p.Problem, "are all labelled data") })
	_, err := n.p.Get(t.Context(), "pvc-1")
	if !errors.Is(err, provision.ErrConflict) && !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("one of two: %v", err)
	}
	fails(t, "creating", n.create("pvc-2", 32, provision.Source{}), provision.ErrUnavailable)
	unmount()
	n.restart()
	if v := n.mustGet("pvc-1"); v.Problem != "" {
		t.Errorf("it is %+v", v)
	}
}

func TestASubvolumeInPlaceOfTheVolumesIsNotUsed(t *testing.T) {
	n := newNode(t, "data")
	v := n.mustCreate("pvc-1", 32, provision.Source{})
	m, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		t.Fatal(err)
	}
	staged, target := filepath.Join(t.TempDir(), "staged"), filepath.Join(t.TempDir(), "target")
	request := mount.Request{Content: v.Content, Target: staged, Filesystem: provision.Subvolume}
	if err := m.Mount(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	stats, err := m.Stats(t.Context(), staged)
	if err != nil || stats.Total != 32*mebibyte || stats.Used+stats.Available != stats.Total {
		t.Errorf("its figures are %+v, %v", stats, err)
	}
	bind := mount.BindRequest{Content: v.Content, Source: staged, Target: target}
	if err := m.Bind(t.Context(), bind); err != nil {
		t.Fatal(err)
	}
	fails(t, "deleting what is mounted", n.p.Delete(t.Context(), "pvc-1"), provision.ErrInUse)
	for _, at := range []string{target, staged} {
		if err := m.Unmount(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	data := n.Data("pvc-1")
	btrfstest.Run(t, "mv", data, data+".old")
	btrfstest.Run(t, "btrfs", "subvolume", "snapshot", data+".old", data)
	fails(t, "mounting another", m.Mount(t.Context(), request), provision.ErrUnavailable)
	btrfstest.Run(t, "mount", "-o", "subvol=/.berth/volumes/pvc-1/data", n.Disk, staged)
	fails(t, "binding another", m.Bind(t.Context(), bind), provision.ErrUnavailable)
	for _, at := range []string{target, staged} {
		if err := m.Unmount(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	n.restart()
	if v := n.mustGet("pvc-1"); !strings.Contains(v.Problem, "in place of its subvolume") {
		t.Errorf("it is %+v", v)
	}
	fails(t, "deleting", n.p.Delete(t.Context(), "pvc-1"), provision.ErrConflict)
	fails(t, "making it again", n.create("pvc-1", 32, provision.Source{}), provision.ErrConflict)
	_, err = n.p.Expand(t.Context(), provision.ExpandRequest{ID: "pvc-1", Size: 64 * mebibyte})
	fails(t, "expanding", err, provision.ErrConflict)
}

func TestWhatOthersPutBesideAVolumeIsNotRemovedWithIt(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 32, provision.Source{})
	backup := n.Data("pvc-1") + ".backup"
	btrfstest.Run(t, "btrfs", "subvolume", "snapshot", n.Data("pvc-1"), backup)
	n.restart()
	if v := n.mustGet("pvc-1"); v.Problem != "" {
		t.Errorf("it is %+v", v)
	}
	if err := n.p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Fatal(err)
	}
	n.await("it to be told", func(p provision.Pool) bool {
		return len(p.Wiping) == 1 && strings.Contains(p.Wiping[0].Problem, "not empty")
	})
	backup = filepath.Join(n.Top, ".berth/trash/pvc-1/data.backup")
	if _, err := os.Stat(backup); err != nil {
		t.Error(err)
	}
	fails(t, "making it again", n.create("pvc-1", 32, provision.Source{}), provision.ErrUnavailable)
	btrfstest.Run(t, "btrfs", "subvolume", "delete", backup)
	n.await("its room", func(p provision.Pool) bool { return len(p.Wiping) == 0 })
}
