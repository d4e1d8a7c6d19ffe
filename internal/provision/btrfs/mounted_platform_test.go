//go:build platform

package btrfs_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/run"
)

func TestASubvolumeIsMountedAsAsked(t *testing.T) {
	n := newNode(t, "data")
	v := n.mustCreate("pvc-1", 32, provision.Source{})
	m, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "target")
	r := mount.Request{Content: v.Content, Target: target, Filesystem: provision.Subvolume, Options: []string{"noatime", "nodev", "nosuid"}, ReadOnly: true}
	for range 2 { // the second time it is there
		if err := m.Mount(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if err := m.Unmount(t.Context(), target); err != nil {
			t.Error(err)
		}
	}()
	if err := os.WriteFile(filepath.Join(target, "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("writing to it: %v", err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(target, &st); err != nil {
		t.Fatal(err)
	}
	if want := int64(unix.ST_RDONLY | unix.ST_NOATIME | unix.ST_NODEV | unix.ST_NOSUID); st.Flags&want != want {
		t.Errorf("mounted with flags %x, want %x", st.Flags, want)
	}
	if err := os.WriteFile(filepath.Join(n.Data("pvc-1"), "file"), nil, 0o600); err != nil {
		t.Errorf("writing beside that mount: %v", err)
	}
	missing := r
	missing.Content.Source, missing.Target = n.Disk+"[/.berth/volumes/pvc-2/data]", target+"2"
	if err := m.Mount(t.Context(), missing); !errors.Is(err, provision.ErrNotFound) && !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("mounting what is not there: %v", err)
	}
}

// An administrator made it so, or the kernel after an error.
func TestMountingAVolumeLeavesAReadOnlyFilesystemSo(t *testing.T) {
	n := newNode(t, "data")
	v := n.mustCreate("pvc-1", 32, provision.Source{})
	n.stop()
	btrfstest.Run(t, "mount", "-o", "remount,ro", n.Top)
	m, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "target")
	r := mount.Request{Content: v.Content, Target: target, Filesystem: provision.Subvolume}
	err = m.Mount(t.Context(), r)
	fails(t, "mounting it for writing", err, provision.ErrUnavailable)
	if err == nil {
		if err := m.Unmount(t.Context(), target); err != nil {
			t.Error(err)
		}
	}
	r.ReadOnly = true
	if err := m.Mount(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Unmount(t.Context(), target); err != nil {
			t.Error(err)
		}
	}()
	if err := unix.Mount("", n.Top, "", unix.MS_BIND|unix.MS_REMOUNT, ""); err != nil { // this mount alone
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.Top, "file"), nil, 0o600); !errors.Is(err, unix.EROFS) {
		t.Errorf("the filesystem became writable: %v", err)
	}
}

func TestAVolumeThatIsMountedElsewhereIsInUse(t *testing.T) {
	n := newNode(t, "data")
	n.mustCreate("pvc-1", 32, provision.Source{})
	c := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation", "private", "sh", "-c", //nolint:forbidigo // it waits while the test goes on
		"mount -o subvol=/.berth/volumes/pvc-1/data "+n.Disk+" "+t.TempDir()+" && echo mounted && read end")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	fails(t, "deleting what another namespace has mounted", n.p.Delete(t.Context(), "pvc-1"), provision.ErrInUse)
	in.Close()
	_ = c.Wait()
	if err := n.p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Error(err)
	}
}

func TestAVolumeIsNotInUseForAMountOfTheSamePathOfAnotherFilesystem(t *testing.T) {
	n, other := newNode(t, "data"), btrfstest.New(t, "other", btrfstest.Size)
	n.mustCreate("pvc-1", 32, provision.Source{})
	if err := os.MkdirAll(filepath.Dir(other.Data("pvc-1")), 0o700); err != nil {
		t.Fatal(err)
	}
	btrfstest.Run(t, "btrfs", "subvolume", "create", other.Data("pvc-1"))
	target := t.TempDir()
	btrfstest.Run(t, "mount", "-o", "subvol=/.berth/volumes/pvc-1/data", other.Disk, target)
	defer btrfstest.Run(t, "umount", target)
	if err := n.p.Delete(t.Context(), "pvc-1"); err != nil {
		t.Errorf("deleting a volume that is not mounted: %v", err)
	}
	if err := os.WriteFile(filepath.Join(target, "file"), nil, 0o600); err != nil {
		t.Errorf("the other subvolume is gone: %v", err)
	}
}

func TestAVolumeIsInUseAsLongAsAnythingInItIsMounted(t *testing.T) {
	for name, mounts := range map[string]func(n *node, target string){
		"its subvolume, by its id": func(n *node, target string) {
			id := btrfstest.Run(t, "btrfs", "inspect-internal", "rootid", n.Data("pvc-1"))
			btrfstest.Run(t, "mount", "-o", "subvolid="+id, n.Disk, target)
		},
		"a directory in it": func(n *node, target string) {
			n.Put(".berth/volumes/pvc-1/data/dir/file", 4096)
			btrfstest.Run(t, "mount", "--bind", n.Data("pvc-1")+"/dir", target)
		},
		"a subvolume that a tenant made in it": func(n *node, target string) {
			btrfstest.Run(t, "btrfs", "subvolume", "create", n.Data("pvc-1")+"/own")
			btrfstest.Run(t, "mount", "-o", "subvol=/.berth/volumes/pvc-1/data/own", n.Disk, target)
		},
		"the directory that it is in": func(n *node, target string) {
			btrfstest.Run(t, "mount", "--bind", filepath.Dir(n.Data("pvc-1")), target)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "data")
			n.mustCreate("pvc-1", 32, provision.Source{})
			target := t.TempDir()
			mounts(n, target)
			fails(t, "deleting it", n.p.Delete(t.Context(), "pvc-1"), provision.ErrInUse)
			btrfstest.Run(t, "umount", target)
			if err := n.p.Delete(t.Context(), "pvc-1"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAFilesystemWithoutSimpleQuotasTakesNothing(t *testing.T) {
	for name, want := range map[string]string{"none": "btrfs quota enable --simple", "full": "full quotas"} {
		t.Run(name, func(t *testing.T) {
			n := newNode(t, "data")
			n.mustCreate("pvc-1", 32, provision.Source{})
			btrfstest.Run(t, "btrfs", "quota", "disable", n.Top)
			if name == "full" {
				btrfstest.Run(t, "btrfs", "quota", "enable", n.Top)
			}
			if p := n.restartAndRead(); !strings.Contains(p.Problem, want) {
				t.Errorf("the problem is %q", p.Problem)
			}
			fails(t, "creating", n.create("pvc-2", 32, provision.Source{}), provision.ErrUnavailable)
			if v := n.mustGet("pvc-1"); v.Problem != "" {
				t.Errorf("a volume that is there cannot be used: %s", v.Problem)
			}
		})
	}
}

func TestLookingAtAReadOnlyFilesystemLeavesItSo(t *testing.T) {
	n := newNode(t, "data")
	n.stop()
	n.Unmount()
	if err := unix.Mount(n.Disk, n.Top, "btrfs", unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	n.start()
	n.await("it to be read", func(p provision.Pool) bool { return strings.Contains(p.Problem, "it is read-only") })
	fails(t, "creating", n.create("pvc-1", 32, provision.Source{}), provision.ErrUnavailable)
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(table)) {
		if _, options, ok := strings.Cut(line, " - btrfs "+n.Disk+" "); ok && !strings.HasPrefix(options, "ro,") {
			t.Errorf("it became writable: %s", line)
		}
	}
}

func TestADiskThatFailsLosesNoVolumeAndHoldsUpNoOther(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("disks", dir, "tmpfs", 0, "size=96m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	n := newNodeOn(t, btrfstest.On(t, "data", btrfstest.DiskIn(t, dir, btrfstest.Size)))
	other := newNode(t, "other")
	n.mustCreate("pvc-1", 32, provision.Source{})
	if err := os.WriteFile(filepath.Join(dir, "full"), make([]byte, 96<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk can still write: %v", err)
	}
	if err := n.create("pvc-2", 32, provision.Source{}); err == nil {
		t.Error("a volume was made on a disk that fails")
	}
	n.await("the fault to be told", func(p provision.Pool) bool { return p.Problem != "" && len(p.Volumes) == 1 })
	if err := n.p.Delete(t.Context(), "pvc-1"); err == nil {
		t.Error("a volume was deleted on a disk that fails")
	}
	if err := n.p.Healthy(); err == nil {
		t.Error("all is well")
	}
	for _, p := range []*node{n, other} {
		if _, err := p.p.Create(t.Context(), provision.CreateRequest{ID: "pvc-3", Pool: other.Ref, Size: 1, Tree: provision.Subvolume}); err != nil {
			t.Errorf("in the other filesystem: %v", err)
		}
	}
}
