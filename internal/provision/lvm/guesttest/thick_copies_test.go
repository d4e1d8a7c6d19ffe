//go:build platform

package guesttest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
)

func TestConformanceOfThickSnapshotsOnRealLVM(t *testing.T) {
	pool := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
	conformance.RunSnapshots(t, func(t *testing.T) conformance.Harness { return lvmtest.RealConformance(t, pool) })
}

// bench is a provisioner over a real volume group, which is emptied afterwards.
type bench struct {
	*testing.T
	config lvm.Config
	p      *lvm.Provisioner
	stop   func()
	pool   provision.PoolRef
	// foreign is how many bytes foreign volumes have in the group.
	foreign int64
}

func begin(t *testing.T) *bench {
	t.Helper()
	pool := lvmtest.RealGroup(t, "vg-berth", lvmtest.Disks(t, 1)[0])
	lvmtest.EmptyAfter(t, pool.Name)
	c, _, _ := lvmtest.RealConfig(t)
	b := &bench{T: t, config: c, pool: pool}
	b.p, b.stop = lvmtest.Start(t, c)
	return b
}

func (b *bench) make(id string, size int64, source provision.Source) provision.Volume {
	b.Helper()
	v, err := b.p.Create(b.Context(), provision.CreateRequest{ID: id, Pool: b.pool, Size: size * mib, Source: source})
	if err != nil {
		b.Fatal(err)
	}
	return v
}

func (b *bench) snapshot(id, volume string) provision.Snapshot {
	b.Helper()
	s, err := b.p.Snapshot(b.Context(), provision.SnapshotRequest{ID: id, Volume: volume})
	if err != nil || !s.Copying {
		b.Fatalf("took %+v, %v", s, err)
	}
	return s
}

// fill makes a foreign logical volume, which leaves so many bytes free.
func (b *bench) fill(but int64) {
	b.Helper()
	pools, err := b.p.Report(b.Context())
	if err != nil || len(pools) != 1 {
		b.Fatalf("reported %+v, %v", pools, err)
	}
	b.foreign = pools[0].Free - but
	lvmtest.RealForeign(b, b.pool.Name, "theirs", b.foreign)
}

// settle waits until all copies are whole, no copy-on-write snapshot takes room any more, and
// nothing is left to be wiped.
func (b *bench) settle() provision.Pool {
	b.Helper()
	var pool provision.Pool
	defer func() {
		if b.Failed() {
			b.Logf("there is %+v, of which others have %d", pool, b.foreign)
		}
	}()
	lvmtest.Eventually(b.T, func() bool {
		pools, err := b.p.Report(b.Context())
		if err != nil || len(pools) != 1 {
			return false
		}
		pool = pools[0]
		done := len(pool.Wiping) == 0 && pool.Foreign == b.foreign
		for _, v := range pool.Volumes {
			done = done && !v.Copying
		}
		for _, s := range pool.Snapshots {
			done = done && !s.Copying
		}
		return done
	}, "copies are not made")
	return pool
}

// mounted mounts a volume until the end of the test. A copy of xfs has the UUID of its source.
// The kernel mounts both at once only with the option nouuid.
func (b *bench) mounted(v provision.Volume) (dir string, unmount func()) {
	b.Helper()
	dir = b.TempDir()
	options := map[string]string{provision.XFS: "nouuid"}[v.Filesystem]
	if err := unix.Mount(v.Content.Source, dir, v.Filesystem, 0, options); err != nil {
		b.Fatalf("mounting %+v: %v", v, err)
	}
	unmounted := false
	unmount = func() {
		if !unmounted {
			unmounted = true
			if err := unix.Unmount(dir, 0); err != nil {
				b.Error(err)
			}
		}
	}
	b.Cleanup(unmount)
	return dir, unmount
}

func TestASnapshotOfAMountedThickVolumeHoldsAllThatWasWrittenBeforeOnRealLVM(t *testing.T) {
	for _, filesystem := range []string{provision.Ext4, provision.XFS} {
		t.Run(filesystem, func(t *testing.T) {
			b := begin(t)
			size := max(64, provision.MinSize(filesystem)/mib+20)
			b.make("pvc-1", size, provision.Source{})
			v, err := b.p.Format(t.Context(), provision.FormatRequest{ID: "pvc-1", Filesystem: filesystem})
			if err != nil {
				t.Fatal(err)
			}
			dir, unmount := b.mounted(v)
			file := filepath.Join(dir, "file")
			b.write(file, "before")
			s := b.snapshot("snap-1", v.ID)
			b.write(file, "after!")
			clone := b.make("pvc-2", size+8, provision.Source{Volume: v.ID})
			b.write(file, "later!")
			b.settle()
			restored := b.make("pvc-3", size, provision.Source{Snapshot: s.ID})
			b.settle()
			for want, copied := range map[string]provision.Volume{"before": restored, "after!": clone, "later!": v} {
				copied.Filesystem = filesystem
				if copied.ID == v.ID {
					unmount()
				}
				at, done := b.mounted(copied)
				if got, err := os.ReadFile(filepath.Join(at, "file")); err != nil || string(got) != want {
					t.Errorf("%s holds %q, %v, want %q", copied.ID, got, err, want)
				}
				done()
			}
		})
	}
}

// write writes a file and does not sync it.
func (b *bench) write(file, text string) {
	b.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

func TestDataOverwrittenDuringACopyLeavesNoTraceOnRealLVM(t *testing.T) {
	b := begin(t)
	const secret, size = "what nobody else may read", 64
	b.fill(5 * size * mib) // so that a new volume gets the extents of deleted ones
	v := b.make("pvc-1", size, provision.Source{})
	places := make([]int64, 0, size)
	for at := int64(0); at < size*mib; at += mib {
		places = append(places, at+8192)
	}
	for _, at := range places {
		blockdevtest.WriteAt(t, v.Content.Source, secret, at)
	}
	b.snapshot("snap-1", v.ID)
	for _, at := range places {
		blockdevtest.WriteAt(t, v.Content.Source, "something else altogether", at)
	}
	b.settle()
	for _, at := range places {
		if got := blockdevtest.ReadAt(t, "/dev/vg-berth/snap-1", len(secret), at); got != secret {
			t.Fatalf("the snapshot holds %q at %d", got, at)
		}
	}
	if err := b.p.DeleteSnapshot(t.Context(), "snap-1"); err != nil {
		t.Fatal(err)
	}
	if err := b.p.Delete(t.Context(), v.ID); err != nil {
		t.Fatal(err)
	}
	b.settle()
	all := b.make("pvc-2", 5*size, provision.Source{})
	if at := offsetOf(b, all, secret); at >= 0 {
		t.Errorf("a new volume shows it at %d", at)
	}
}

func TestADeletedCopyIsCopiedNoFurtherOnRealLVM(t *testing.T) {
	b := begin(t)
	b.config.CopyStep = 64 << 10 // which takes a while
	b.stop()
	b.p, b.stop = lvmtest.Start(t, b.config)
	v := b.make("pvc-1", 512, provision.Source{})
	b.snapshot("snap-1", v.ID)
	if err := b.p.DeleteSnapshot(t.Context(), "snap-1"); err != nil {
		t.Fatal(err)
	}
	if err := b.p.Delete(context.WithoutCancel(t.Context()), v.ID); err != nil {
		lvmtest.Eventually(t, func() bool { return b.p.Delete(t.Context(), v.ID) == nil }, "its volume cannot be deleted")
	}
	if pool := b.settle(); pool.Free != pool.Total {
		t.Errorf("left is %+v", pool)
	}
}
