//go:build platform

package zfs_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

// node is a provisioner over a zpool of the test's, and a mounter for its datasets.
type node struct {
	*testing.T
	*zfs.Provisioner
	mounter *linux.Mounter
	pool    provision.PoolRef
}

func newNode(t *testing.T) node {
	t.Helper()
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	pool := zfstest.RealPool(t, parent)
	c, _, _ := zfstest.RealConfig(t)
	p, _ := start(t, c)
	return node{T: t, Provisioner: p, mounter: realMounter(t), pool: pool}
}

func realMounter(t *testing.T) *linux.Mounter {
	t.Helper()
	m, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (f node) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// dataset makes a volume and records that it is in use.
func (f node) dataset(id string, size int64, change ...func(*provision.CreateRequest)) provision.Volume {
	f.Helper()
	r := provision.CreateRequest{ID: id, Pool: f.pool, Size: size, Tree: provision.Dataset}
	for _, c := range change {
		c(&r)
	}
	_, err := f.Create(f.Context(), r)
	f.must(err)
	v, err := f.Format(f.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Dataset})
	f.must(err)
	return v
}

// mount mounts a dataset in a temporary directory of the test.
func (f node) mount(v provision.Volume, options ...string) (dir string) {
	f.Helper()
	dir = filepath.Join(f.TempDir(), "mounted")
	r := mount.Request{Content: v.Content, Target: dir, Filesystem: provision.Dataset, Options: options}
	for range 2 { // the second time it is there
		f.must(f.mounter.Mount(f.Context(), r))
	}
	f.Cleanup(func() { f.unmount(dir) })
	return dir
}

func (f node) unmount(dir string) {
	f.Helper()
	f.must(f.mounter.Unmount(context.WithoutCancel(f.Context()), dir))
}

func (f node) holds(dir, name, want string) {
	f.Helper()
	if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
		f.Errorf("%s holds %q, %v, want %q", name, got, err, want)
	}
}

// fill writes until there is no more room, and says how much went in.
func (f node) fill(path string, most int64) (written int64, err error) {
	f.Helper()
	file, err := os.Create(path)
	f.must(err)
	defer file.Close()
	block := bytes.Repeat([]byte("berth.dev/zfs..."), 64<<10/16)
	for written < most {
		n, err := file.Write(block)
		written += int64(n)
		if err != nil {
			return written, err
		}
		if written%(8<<20) == 0 {
			if err := file.Sync(); err != nil {
				return written, err
			}
		}
	}
	return written, file.Sync()
}

func TestADatasetIsFilledAndGrowsWhileItIsMountedOnRealZFS(t *testing.T) {
	f := newNode(t)
	const mib = int64(1 << 20)
	// Near the quota ZFS waits for the disk at each record: a small volume of large ones is full soon.
	v := f.dataset("pvc-files", 24*mib, func(r *provision.CreateRequest) {
		r.Tuning = provision.Tuning{RecordSize: 128 << 10, Compression: "off"}
	})
	if got := zfstest.Run(t, "zfs", "get", "-Hpo", "value", "recordsize,compression,mountpoint,canmount,acltype,xattr,refquota,refreservation", v.Content.Source); got != "131072\noff\nlegacy\nnoauto\nposix\nsa\n25165824\n25165824" {
		t.Errorf("kept as %q", got)
	}
	dir := f.mount(v, "noatime", "nosuid")
	f.must(os.WriteFile(filepath.Join(dir, "kept"), []byte("kept"), 0o600))
	before, err := f.mounter.Stats(t.Context(), dir)
	if err != nil || before.Total < 20*mib || before.Total > 24*mib || before.Inodes <= 0 {
		t.Errorf("figures %+v, %v", before, err)
	}
	written, err := f.fill(filepath.Join(dir, "large"), 40*mib)
	if !errors.Is(err, unix.EDQUOT) || written < 20*mib || written > 24*mib {
		t.Errorf("%d bytes went in: %v", written, err)
	}
	t.Logf("full after %d bytes: %v", written, err)

	started := time.Now()
	grown, err := f.Expand(t.Context(), provision.ExpandRequest{ID: v.ID, Size: 96 * mib})
	if err != nil || grown.Size != 96*mib {
		t.Errorf("growing while it is full: %+v, %v", grown, err)
	}
	t.Logf("growing took %v", time.Since(started).Round(time.Millisecond))
	f.must(f.mounter.Grow(t.Context(), mount.GrowRequest{Content: v.Content, Target: dir, Filesystem: provision.Dataset}))
	if after, err := f.mounter.Stats(t.Context(), dir); err != nil || after.Total < before.Total+64*mib {
		t.Errorf("figures %+v, %v; before %+v", after, err, before)
	}
	if written, err := f.fill(filepath.Join(dir, "more"), 16*mib); err != nil {
		t.Errorf("after growing %d bytes went in: %v", written, err)
	}
	f.holds(dir, "kept", "kept")
}

func TestADatasetIsRestoredBesideItsSourceAndLargerOnRealZFS(t *testing.T) {
	f := newNode(t)
	v := f.dataset("pvc-files", 64<<20)
	dir := f.mount(v)
	f.must(os.WriteFile(filepath.Join(dir, "file"), []byte("before"), 0o600))
	s, err := f.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: v.ID})
	if err != nil || s.Size != v.Size || s.Filesystem != provision.Dataset {
		t.Fatalf("snapshot %+v, %v", s, err)
	}
	f.must(os.WriteFile(filepath.Join(dir, "file"), []byte("after"), 0o600))
	f.must(os.WriteFile(filepath.Join(dir, "garbage"), bytes.Repeat([]byte("after..."), 1<<19), 0o600)) // no snapshot holds it
	restored := f.dataset("pvc-restored", 96<<20, func(r *provision.CreateRequest) { r.Source.Snapshot = s.ID })
	other := f.mount(restored)
	f.holds(other, "file", "before")
	if figures, err := f.mounter.Stats(t.Context(), other); err != nil || figures.Total < 90<<20 {
		t.Errorf("figures %+v, %v", figures, err)
	}
	clone := f.dataset("pvc-clone", 64<<20, func(r *provision.CreateRequest) { r.Source.Volume = v.ID })
	f.holds(f.mount(clone), "file", "after")
	f.holds(dir, "file", "after")

	if err := f.Delete(t.Context(), v.ID); !errors.Is(err, provision.ErrInUse) { // it would move away
		t.Errorf("deleting while it is mounted: %v", err)
	}
	f.unmount(dir)
	f.must(f.Delete(t.Context(), v.ID))
	f.Wait()
	trash := parent + "/berth-trash/" + v.ID + ".1"
	if got := zfstest.Run(t, "zfs", "get", "-Hpo", "value", "refreservation", trash); got != "0" {
		t.Errorf("in the trash it is promised %s bytes", got)
	}
	if got, err := strconv.ParseInt(zfstest.Run(t, "zfs", "get", "-Hpo", "value", "written", trash), 10, 64); err != nil || got >= 1<<20 {
		t.Errorf("in the trash it takes %d bytes that no snapshot holds, %v", got, err)
	}
	f.must(f.DeleteSnapshot(t.Context(), s.ID))
	f.holds(other, "file", "before")
}

func TestADatasetThatIsMountedAnywhereIsNotDeletedOnRealZFS(t *testing.T) {
	f := newNode(t)
	v := f.dataset("pvc-files", 64<<20)
	dir := f.mount(v)
	f.must(os.WriteFile(filepath.Join(dir, "file"), []byte("kept"), 0o600))
	if err := f.Delete(t.Context(), v.ID); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("while it is mounted: %v", err)
	}
	f.holds(dir, "file", "kept")

	leave := f.elsewhere()
	f.unmount(dir)
	if err := f.Delete(t.Context(), v.ID); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("while it is mounted in another namespace: %v", err)
	}
	leave()
	f.must(f.Delete(t.Context(), v.ID))
	if _, err := f.Get(t.Context(), v.ID); !errors.Is(err, provision.ErrNotFound) {
		t.Errorf("deleted: %v", err)
	}
}

// elsewhere starts a process in a mount namespace of its own, which keeps the present mounts
// until leave is called.
func (f node) elsewhere() (leave func()) {
	f.Helper()
	there := filepath.Join(f.TempDir(), "there")
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = run.Exec{}.Query(ctx, run.Command{Operation: "unshare", Program: "unshare", Args: []string{
			"--mount", "--propagation", "private", "sh", "-c", "touch " + there + "; exec sleep 600",
		}})
	}()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for deadline := time.After(time.Minute); ; {
		if _, err := os.Stat(there); err == nil {
			break
		}
		select {
		case <-deadline:
			f.Fatal("no process came to another mount namespace")
		case <-look.C:
		}
	}
	return func() { cancel(); <-ended }
}

func TestTheLeftoverOfACrashIsMadeAgainOnRealZFS(t *testing.T) {
	f := newNode(t)
	source := f.dataset("pvc-files", 64<<20)
	f.must(os.WriteFile(filepath.Join(f.mount(source), "file"), bytes.Repeat([]byte("kept"), 1<<20), 0o600))
	zfstest.Run(t, "zfs", "snapshot", source.Content.Source+"@theirs")
	for id, make := range map[string][]string{
		"pvc-blank": {"create", "-o", "mountpoint=legacy", volumes + "pvc-blank"},
		"pvc-zvol":  {"create", "-s", "-V", "64M", volumes + "pvc-zvol"},
		"pvc-clone": {"clone", source.Content.Source + "@theirs", volumes + "pvc-clone"},
	} {
		zfstest.Run(t, "zfs", make...)
		c, _, _ := zfstest.RealConfig(t)
		p, _ := start(t, c)
		if _, err := p.Get(t.Context(), id); !errors.Is(err, provision.ErrNotFound) {
			t.Errorf("%s is there: %v", id, err)
		}
		if _, err := p.Create(t.Context(), provision.CreateRequest{ID: id, Pool: f.pool, Size: 64 << 20, Tree: provision.Dataset}); err != nil {
			t.Errorf("%s: %v", id, err)
		}
		if got := zfstest.Run(t, "zfs", "get", "-Hpo", "value", "refreservation,origin", volumes+id); got != "67108864\n-" {
			t.Errorf("%s has %q", id, got)
		}
	}
}

// ZFS refuses the reservation of a zvol after it has made the zvol, and udev looks at it by then.
func TestAVolumeThatHadNoRoomIsNotThereOnRealZFS(t *testing.T) {
	f := newNode(t)
	r := provision.CreateRequest{ID: "pvc-source", Pool: f.pool, Size: 64 << 20}
	_, err := f.Create(t.Context(), r)
	f.must(err)
	_, err = f.Report(t.Context())
	f.must(err)
	zfstest.Run(t, "zfs", "create", "-o", "mountpoint=none", "-o", "reservation=3G", "tank/theirs") // the provisioner has not seen it
	for n, from := range []provision.Source{{}, {Volume: "pvc-source"}, {}, {Volume: "pvc-source"}} {
		r.ID, r.Size, r.Source = "pvc-"+strconv.Itoa(n), 1<<30, from
		if _, err := f.Create(t.Context(), r); !errors.Is(err, provision.ErrNoSpace) {
			t.Errorf("%s: %v, want ErrNoSpace", r.ID, err)
		}
	}
	f.Wait()
	want := parent + "\n" + parent + "/berth-volumes\n" + volumes + "pvc-source"
	if got := zfstest.Run(t, "zfs", "list", "-Ho", "name", "-t", "all", "-r", parent); got != want {
		t.Errorf("there is %s", got)
	}
}

// ZFS and udev must bear eight changes at once.
func TestVolumesAreMadeCopiedAndDeletedAtTheSameTimeOnRealZFS(t *testing.T) {
	f := newNode(t)
	f.dataset("pvc-first", 8<<20)
	for name, filesystem := range map[string]string{"zvols": "", "datasets": provision.Dataset} {
		source := provision.CreateRequest{ID: "pvc-" + name, Pool: f.pool, Size: 8 << 20, Tree: filesystem}
		_, err := f.Create(t.Context(), source)
		f.must(err)
		_, err = f.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-" + name, Volume: source.ID})
		f.must(err)
		f.must(errors.Join(eight(func(n int) error {
			ctx, r, id := t.Context(), source, "pvc-"+name+"-"+strconv.Itoa(n)
			r.ID, r.Source = id, []provision.Source{{}, {Snapshot: "snap-" + name}, {Volume: source.ID}}[n%3]
			_, err := f.Create(ctx, r)
			if err == nil {
				_, err = f.Snapshot(ctx, provision.SnapshotRequest{ID: "snap-" + id[4:], Volume: id})
			}
			if err == nil {
				err = f.Delete(ctx, id)
			}
			if err == nil {
				err = f.DeleteSnapshot(ctx, "snap-"+id[4:])
			}
			return err
		})...))
		f.must(f.DeleteSnapshot(t.Context(), "snap-"+name))
		f.must(f.Delete(t.Context(), source.ID))
	}
	f.Wait()
	want := strings.Join([]string{parent, parent + "/berth-trash", parent + "/berth-volumes", volumes + "pvc-first"}, "\n")
	if got := zfstest.Run(t, "zfs", "list", "-Ho", "name", "-t", "all", "-r", parent); got != want {
		t.Errorf("left:\n%s", got)
	}
}

func TestConformanceOfDatasetsOnRealZFS(t *testing.T) {
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	t.Run("volumes", func(t *testing.T) { conformance.Run(t, realDatasetHarness) })
	t.Run("snapshots", func(t *testing.T) { conformance.RunSnapshots(t, realDatasetHarness) })
}

func realDatasetHarness(t *testing.T) conformance.Harness {
	h := realHarness(t)
	h.Filesystem = provision.Dataset
	m := realMounter(t)
	open := func(v provision.Volume) (dir string, closeVolume func()) {
		dir = filepath.Join(t.TempDir(), "mounted")
		if err := m.Mount(t.Context(), mount.Request{Content: v.Content, Target: dir, Filesystem: provision.Dataset}); err != nil {
			t.Fatal(err)
		}
		return dir, func() {
			if err := m.Unmount(context.WithoutCancel(t.Context()), dir); err != nil {
				t.Error(err)
			}
		}
	}
	h.Open = func(v provision.Volume) func() { _, closeVolume := open(v); return closeVolume }
	h.Scramble = func(provision.Volume) {}
	h.Write = func(v provision.Volume, text string) {
		dir, closeVolume := open(v)
		defer closeVolume()
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h.Read = func(v provision.Volume, bytes int) string {
		dir, closeVolume := open(v)
		defer closeVolume()
		text, err := os.ReadFile(filepath.Join(dir, "file"))
		if err != nil || len(text) < bytes {
			t.Fatalf("%q, %v", text, err)
		}
		return string(text[:bytes])
	}
	return h
}
