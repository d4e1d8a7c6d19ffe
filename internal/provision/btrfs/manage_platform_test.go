//go:build platform

package btrfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/btrfs"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/run"
)

// shelf lends loop devices as package device lends disks.
type shelf struct{ nodes []string }

func name(node string) string { return provision.DiskPrefix + filepath.Base(node) }

func empty(node string) bool {
	f, err := os.Open(node)
	if err != nil {
		return false
	}
	defer f.Close()
	b := make([]byte, 128<<10)
	_, err = f.ReadAt(b, 0)
	return err == nil && bytes.Count(b, []byte{0}) == len(b)
}

func (s *shelf) Lend(_ context.Context, disks []string, take func(nodes []string) error) (refused []error, err error) {
	var lent []string
	for _, node := range s.nodes {
		switch {
		case !slices.Contains(disks, name(node)):
		case empty(node):
			lent = append(lent, node)
		default:
			refused = append(refused, errors.New(node+" is not empty"))
		}
	}
	if len(lent) == 0 {
		return refused, nil
	}
	return refused, take(lent)
}

// bare is a machine without filesystems, on which a provisioner can make them.
type bare struct {
	*btrfs.Provisioner
	shelf *shelf
	t     *testing.T
	stop  func()
}

func newBare(t *testing.T) *bare {
	b := &bare{t: t, shelf: &shelf{}}
	b.restart()
	return b
}

func (b *bare) restart() {
	b.t.Helper()
	if b.stop != nil {
		b.stop()
	}
	p, err := btrfs.New(btrfs.Config{Runner: run.Exec{}, Disks: b.shelf, RefreshInterval: time.Second})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Provisioner, b.stop = p, conformance.Watching(b.t, p.Run)
}

func (b *bare) plug() string {
	node := btrfstest.Disk(b.t, btrfstest.Size)
	b.t.Cleanup(func() { b.stop() }) // before the disk goes
	b.shelf.nodes = append(b.shelf.nodes, node)
	return name(node)
}

// Report adds the disks, as package device reports them.
func (b *bare) Report(ctx context.Context) ([]provision.Pool, error) {
	pools, err := b.Provisioner.Report(ctx)
	for _, node := range b.shelf.nodes {
		p := provision.Pool{PoolRef: provision.PoolRef{Type: provision.Device, Name: name(node)}, Total: btrfstest.Size, Free: btrfstest.Size, Unit: btrfstest.Size}
		if !empty(node) {
			p.Free, p.Problem = 0, "it is not empty"
		}
		pools = append(pools, p)
	}
	return pools, err
}

var made = provision.PoolRef{Type: provision.Btrfs, Name: "btrfs:made"}

func TestConformanceOfManagedFilesystems(t *testing.T) {
	conformance.RunGroupManager(t, func(t *testing.T) conformance.Managed {
		b := newBare(t)
		return conformance.Managed{
			Node: b, Group: made, Plug: b.plug,
			Restart: func() conformance.ManagedNode { // the machine stays, so others may have it mounted
				f, err := kernel.Open(b.fsid(), true)
				if err != nil {
					t.Fatal(err)
				}
				b.restart()
				b.ensure(provision.PoolWish{Pool: made}, provision.PoolAsAsked)
				f.Close()
				return b
			},
			Use: func(disk string) {
				blockdevtest.WriteAt(t, "/dev/"+strings.TrimPrefix(disk, provision.DiskPrefix), strings.Repeat("data", 1024), 4096)
			},
			PutGroup: func() {
				(&node{Filesystem: btrfstest.New(t, "made", btrfstest.Size), t: t}).count()
				b.Want(made)
			},
		}
	})
}

// fsid returns the UUID of the one filesystem that is mounted.
func (b *bare) fsid() string {
	b.t.Helper()
	mounted, err := kernel.Mounted()
	if err != nil || len(mounted) != 1 {
		b.t.Fatalf("mounted are %v, %v", mounted, err)
	}
	for fsid := range mounted {
		return fsid
	}
	return ""
}

func (b *bare) ensure(w provision.PoolWish, want provision.Reason) {
	b.t.Helper()
	w.Pool = made
	if got, err := b.Ensure(b.t.Context(), w); err != nil || got.Reason != want {
		b.t.Fatalf("it is %+v, %v; want %s", got, err, want)
	}
}

func TestAFilesystemThatBerthMadeIsMountedAgainAfterTheMachineStarted(t *testing.T) {
	b := newBare(t)
	w := provision.PoolWish{Disks: []string{b.plug(), b.plug()}}
	b.ensure(w, provision.PoolMade)
	v, err := b.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: made, Size: 64 * mebibyte, Tree: provision.Subvolume})
	if err != nil {
		t.Fatal(err)
	}
	b.stop()
	for _, node := range b.shelf.nodes { // a machine that starts knows of no disk
		btrfstest.Run(t, "btrfs", "device", "scan", "--forget", node)
	}
	b.restart()
	b.ensure(provision.PoolWish{Search: []string{"/dev/null"}}, provision.PoolAwaitsDisks)
	b.ensure(provision.PoolWish{Search: b.shelf.nodes}, provision.PoolImported)
	b.ensure(provision.PoolWish{Search: b.shelf.nodes}, provision.PoolAsAsked)
	if got, err := b.Get(t.Context(), "pvc-1"); err != nil || got != v {
		t.Errorf("the volume is %+v, %v, and was %+v", got, err, v)
	}
	if err := b.Delete(t.Context(), "pvc-1"); err != nil {
		t.Error(err)
	}
	b.stop()
	btrfstest.Run(t, "btrfs", "device", "scan", "--forget", b.shelf.nodes[0])
	b.restart()
	if o, err := b.Ensure(t.Context(), provision.PoolWish{Pool: made, Search: b.shelf.nodes[1:]}); err == nil {
		t.Errorf("with a disk missing it is %+v", o)
	}
}

// A disk may have been copied to another, which is older now.
func TestAFilesystemIsNotMountedWhileACopyOfItsDiskIsThere(t *testing.T) {
	b := newBare(t)
	b.ensure(provision.PoolWish{Disks: []string{b.plug()}}, provision.PoolMade)
	b.stop()
	b.plug()
	disk, twin := b.shelf.nodes[0], b.shelf.nodes[1]
	btrfstest.Run(t, "dd", "if="+disk, "of="+twin, "bs=1M", "conv=sparse", "status=none")
	btrfstest.Run(t, "btrfs", "device", "scan", "--forget", disk)
	b.restart()
	for _, nodes := range [][]string{{disk, twin}, {twin, disk}} {
		o, err := b.Ensure(t.Context(), provision.PoolWish{Pool: made, Search: nodes})
		if err != nil || o.Reason != provision.PoolTroubled || !strings.Contains(o.Message, nodes[0]+" and "+nodes[1]) {
			t.Errorf("it is %+v, %v", o, err)
		}
	}
	if mounted, err := kernel.Mounted(); err != nil || len(mounted) > 0 {
		t.Errorf("mounted are %v, %v", mounted, err)
	}
	btrfstest.Run(t, "wipefs", "--all", twin)
	b.ensure(provision.PoolWish{Search: b.shelf.nodes}, provision.PoolImported)
}

func TestAFilesystemOfOthersThatIsNotMountedIsLeftAlone(t *testing.T) {
	b := newBare(t)
	b.plug()
	btrfstest.Run(t, "mkfs.btrfs", "-q", "-L", "made", b.shelf.nodes[0])
	b.ensure(provision.PoolWish{Search: b.shelf.nodes}, provision.PoolForeign)
	more := b.plug()
	b.ensure(provision.PoolWish{Search: b.shelf.nodes, Disks: []string{more}}, provision.PoolForeign)
}

// The process or the machine may end when mkfs has ended, or when the filesystem was mounted.
func TestTheMakingOfAFilesystemMayEndAtAnyStep(t *testing.T) {
	for _, mounts := range []bool{false, true} {
		t.Run(fmt.Sprint(mounts), func(t *testing.T) {
			b := newBare(t)
			b.ensure(provision.PoolWish{Disks: []string{b.plug()}}, provision.PoolMade)
			fsid := b.fsid()
			b.stop()
			btrfstest.Run(t, "wipefs", "--all", b.shelf.nodes[0])
			btrfstest.Run(t, "mkfs.btrfs", "-q", "-f", "-L", "made", "-U", fsid, b.shelf.nodes[0]) // without quotas
			b.restart()
			want := provision.PoolImported
			if mounts {
				top := t.TempDir()
				btrfstest.Run(t, "mount", b.shelf.nodes[0], top)
				t.Cleanup(func() { btrfstest.Run(t, "umount", top) })
				want = provision.PoolTroubled // until it was read again
			}
			b.ensure(provision.PoolWish{Search: b.shelf.nodes}, want)
			b.ensure(provision.PoolWish{Search: b.shelf.nodes}, provision.PoolAsAsked)
			if _, err := b.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: made, Size: 1, Tree: provision.Subvolume}); err != nil {
				t.Error(err)
			}
		})
	}
}
