//go:build platform

package guesttest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

const (
	zpool    = "powered"
	volumes  = zpool + "/berth-volumes/"
	diskName = "berth-powered"
	diskPath = "/dev/mapper/" + diskName
)

var ref = provision.PoolRef{Type: provision.ZFS, Name: provision.ZFSPrefix + zpool}

// powered is a machine from when it is switched on until its power fails.
type powered struct {
	*testing.T
	*zfs.Provisioner
	mounter *linux.Mounter
	// mounts is the directory in which datasets are mounted, by their ids. open are the zvols in
	// use.
	mounts string
	open   map[string]*os.File
	// end leaves the zpool to others.
	end func()
}

// boot makes or imports the zpool with a command of zpool, and starts nothing else yet.
func boot(t *testing.T, zpoolArgs ...string) *powered {
	t.Helper()
	mounter, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		t.Fatal(err)
	}
	n := &powered{T: t, mounter: mounter, mounts: t.TempDir(), open: map[string]*os.File{}}
	zfstest.Run(t, "udevadm", "settle") // udev looks at a disk that was written
	zfstest.Run(t, "zpool", zpoolArgs...)
	n.end = sync.OnceFunc(n.leave)
	t.Cleanup(func() { n.end() })
	return n
}

// start starts a provisioner that knows nothing yet.
func (n *powered) start() {
	n.Helper()
	c, _, _ := zfstest.RealConfig(n)
	p, err := zfs.New(c)
	n.must(err)
	n.Provisioner = p
	stop := conformance.Watching(n, p.Run)
	n.end = sync.OnceFunc(func() { stop(); p.Wait(); n.leave() })
}

func (n *powered) leave() {
	n.Helper()
	for id := range n.open {
		n.unused(id)
	}
	dirs, err := os.ReadDir(n.mounts)
	n.must(err)
	for _, dir := range dirs {
		n.unused(dir.Name())
	}
	zfstest.Run(n, "udevadm", "settle")
	zfstest.Run(n, "zpool", "export", zpool)
}

func (n *powered) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// file returns the path of a file in a dataset, which is mounted.
func (n *powered) file(v provision.Volume) string {
	n.Helper()
	dir := filepath.Join(n.mounts, v.ID)
	n.must(n.mounter.Mount(n.Context(), mount.Request{Content: v.Content, Target: dir, Filesystem: provision.Dataset}))
	return filepath.Join(dir, "file")
}

// put writes a text into a volume, durably, and goes on using the volume: ZFS writes out all data
// of a volume that is no longer in use, and its intent log would never be needed.
func (n *powered) put(id, text string) {
	n.Helper()
	v := n.find(id)
	switch {
	case v == nil:
		n.Fatalf("volume %s is lost", id)
	case v.Content.IsTree():
		f, err := os.OpenFile(n.file(*v), os.O_WRONLY|os.O_CREATE, 0o600)
		n.must(err)
		_, err = f.WriteString(text)
		n.must(errors.Join(err, f.Sync(), f.Close()))
		return
	case n.open[id] == nil:
		f, err := os.OpenFile(v.Content.Source, os.O_WRONLY, 0)
		n.must(err)
		n.open[id] = f
	}
	for _, at := range places(v.Size) {
		_, err := n.open[id].WriteAt([]byte(text), at)
		n.must(err)
	}
	n.must(n.open[id].Sync())
}

// places returns the offsets at which put writes a text into a zvol of a size.
func places(size int64) []int64 { return []int64{0, size - 4096} }

// holds fails unless a volume bears a text where put writes it into a volume of size bytes.
func (n *powered) holds(v provision.Volume, size int64, text string) {
	n.Helper()
	if v.Content.IsTree() {
		if got, err := os.ReadFile(n.file(v)); err != nil || string(got) != text {
			n.Errorf("dataset %s holds %q, %v, want %q", v.ID, got, err, text)
		}
		return
	}
	for _, at := range places(size) {
		if got := blockdevtest.ReadAt(n, v.Content.Source, len(text), at); got != text {
			n.Errorf("zvol %s holds %q at %d, want %q", v.ID, got, at, text)
		}
	}
}

// unused ends all use of a volume: it closes and unmounts it.
func (n *powered) unused(id string) {
	n.Helper()
	if f := n.open[id]; f != nil {
		n.must(f.Close())
		delete(n.open, id)
	}
	n.must(n.mounter.Unmount(context.WithoutCancel(n.Context()), filepath.Join(n.mounts, id)))
}

// find returns a volume, or nil if it is not there.
func (n *powered) find(id string) *provision.Volume {
	n.Helper()
	v, err := n.Get(n.Context(), id)
	if errors.Is(err, provision.ErrNotFound) {
		return nil
	}
	if err != nil || v.Problem != "" {
		n.Fatalf("volume %s is %+v, %v", id, v, err)
	}
	return &v
}

// pool returns the pool as it is reported, and fails if it has a problem.
func (n *powered) pool() provision.Pool {
	n.Helper()
	pools, err := n.Report(n.Context())
	if err != nil || len(pools) != 1 || pools[0].PoolRef != ref || pools[0].Problem != "" {
		n.Fatalf("reported %+v, %v", pools, err)
	}
	return pools[0]
}

// emptied deletes all volumes and snapshots of the pool, and fails unless all room is free and
// only the hidden filesystems are left.
func (n *powered) emptied() {
	n.Helper()
	found := n.pool()
	for _, v := range found.Volumes {
		n.delete(v.ID)
	}
	for _, s := range found.Snapshots {
		n.must(n.DeleteSnapshot(n.Context(), s.ID))
	}
	n.Wait()
	if got := n.pool(); got.Free != got.Total || got.Foreign != 0 {
		n.Errorf("room is lost: %+v", got)
	}
	left := strings.Fields(zfstest.Run(n, "zfs", "list", "-H", "-t", "all", "-o", "name", "-r", zpool))
	if want := []string{zpool, zpool + "/berth-trash", zpool + "/berth-volumes"}; !slices.Equal(left, want) {
		n.Errorf("%v are left, want %v", left, want)
	}
}
