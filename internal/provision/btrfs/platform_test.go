//go:build platform

package btrfs_test

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/run"
)

// An operation on a real filesystem takes a while; a few sequences of operations are enough, and
// flags can ask for more.
func init() {
	for name, value := range map[string]string{"rapid.checks": "4", "rapid.steps": "20"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
}

// node is a machine with one filesystem, and a provisioner over it.
type node struct {
	*btrfstest.Filesystem
	t *testing.T
	c btrfs.Config
	// also are further pools that a class names.
	also []provision.PoolRef
	p    *btrfs.Provisioner
	stop func()
}

func newNode(t *testing.T, label string) *node {
	t.Helper()
	return newNodeOn(t, btrfstest.New(t, label, btrfstest.Size))
}

func newNodeOn(t *testing.T, f *btrfstest.Filesystem) *node {
	t.Helper()
	n := &node{Filesystem: f, t: t, c: btrfs.Config{Runner: run.Exec{}, RefreshInterval: time.Second}}
	n.count()
	n.start()
	return n
}

// count turns on simple quotas.
func (n *node) count() {
	n.t.Helper()
	f, err := kernel.Open(n.FSID, true)
	if err != nil {
		n.t.Fatal(err)
	}
	defer f.Close()
	if err := f.EnableQuotas(); err != nil {
		n.t.Fatal(err)
	}
}

// start starts a provisioner that knows nothing yet.
func (n *node) start() {
	n.t.Helper()
	p, err := btrfs.New(n.c)
	if err != nil {
		n.t.Fatal(err)
	}
	for _, pool := range append(n.also, n.Ref) {
		p.Want(pool)
	}
	n.p, n.stop = p, conformance.Watching(n.t, p.Run)
}

func (n *node) restart() provision.Provisioner {
	n.stop()
	n.start()
	return n.p
}

// open mounts a volume as the agent does.
func (n *node) open(v provision.Volume) (target string, closeIt func()) {
	n.t.Helper()
	m, err := linux.New(linux.Config{Runner: run.Exec{}})
	if err != nil {
		n.t.Fatal(err)
	}
	target = filepath.Join(n.t.TempDir(), "volume")
	if err := m.Mount(n.t.Context(), mount.Request{Content: v.Content, Target: target, Filesystem: provision.Subvolume}); err != nil {
		n.t.Fatalf("mounting volume %s: %v", v.ID, err)
	}
	closed := false
	closeIt = func() {
		if !closed {
			closed = true
			if err := m.Unmount(context.WithoutCancel(n.t.Context()), target); err != nil {
				n.t.Error(err)
			}
		}
	}
	n.t.Cleanup(closeIt)
	return target, closeIt
}

func (n *node) writeAt(v provision.Volume, text string, offset int64) {
	n.t.Helper()
	target, closeIt := n.open(v)
	defer closeIt()
	f, err := os.OpenFile(filepath.Join(target, "file"), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		n.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(text), offset); err != nil {
		n.t.Fatal(err)
	}
}

// readAt returns zeros where nothing was written.
func (n *node) readAt(v provision.Volume, bytes int, offset int64) string {
	n.t.Helper()
	target, closeIt := n.open(v)
	defer closeIt()
	b := make([]byte, bytes)
	f, err := os.Open(filepath.Join(target, "file"))
	if err != nil {
		return string(b)
	}
	defer f.Close()
	_, _ = f.ReadAt(b, offset)
	return string(b)
}

func (n *node) harness() conformance.Harness {
	return conformance.Harness{
		Provisioner: n.p, Pool: n.Ref, Filesystem: provision.Subvolume,
		Restart:    n.restart,
		PutForeign: func(name string, size int64) { n.Put(filepath.Join(".berth/volumes", name, "theirs"), size) },
		Open: func(v provision.Volume) func() {
			_, closeIt := n.open(v)
			return closeIt
		},
		Scramble: func(provision.Volume) {},
		Write:    func(v provision.Volume, text string) { n.writeAt(v, text, 0) },
		Read:     func(v provision.Volume, bytes int) string { return n.readAt(v, bytes, 0) },
		WriteAt:  n.writeAt,
		ReadAt:   n.readAt,
		Formats:  func(string) int { return 0 },
	}
}

func harness(t *testing.T) conformance.Harness { return newNode(t, "data").harness() }

func TestConformanceOnBtrfs(t *testing.T) {
	t.Run("volumes", func(t *testing.T) { conformance.Run(t, harness) })
	t.Run("snapshots", func(t *testing.T) { conformance.RunSnapshots(t, harness) })
	t.Run("forgets", func(t *testing.T) { conformance.RunForgets(t, harness) })
}

func TestBtrfsPassesTheIdentitySuites(t *testing.T) {
	start := func(t *testing.T) conformance.Harness {
		n := newNode(t, "data")
		h := n.harness()
		h.Twin = func(provision.Volume) func() {
			other := btrfstest.New(t, "other", btrfstest.Size)
			btrfstest.Run(t, "cp", "-a", filepath.Join(n.Top, ".berth"), other.Top)
			n.also = append(n.also, other.Ref)
			return other.Unmount
		}
		h.Namesake = func(id string) func() {
			other := newNode(t, "copy")
			if _, err := other.p.Create(t.Context(), provision.CreateRequest{ID: id, Pool: other.Ref, Size: 1, Tree: provision.Subvolume}); err != nil {
				t.Fatal(err)
			}
			other.stop()
			btrfstest.Run(t, "btrfs", "filesystem", "label", other.Top, "data")
			return other.Unmount
		}
		h.Away = func() func() {
			n.stop()
			n.Unmount()
			return n.Mount
		}
		return h
	}
	conformance.RunTwins(t, start)
	conformance.RunNamesakes(t, start)
	conformance.RunAway(t, start)
}
