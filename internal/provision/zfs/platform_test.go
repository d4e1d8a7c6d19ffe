//go:build platform

package zfs_test

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/kernel"
	"berth.dev/berth/internal/provision/zfs/zfstest"
)

// An operation on real ZFS takes a while in a guest; a few sequences of operations
// are enough there, and flags can ask for more.
func init() {
	for name, value := range map[string]string{"rapid.checks": "2", "rapid.steps": "12"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
}

func TestConformanceOnRealZFS(t *testing.T) {
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	t.Run("volumes", func(t *testing.T) { conformance.Run(t, realHarness) })
	t.Run("snapshots", func(t *testing.T) { conformance.RunSnapshots(t, realHarness) })
}

func TestRealZFSPassesTheIdentitySuite(t *testing.T) {
	start := func(t *testing.T) conformance.Harness {
		disks := blockdevtest.Disks(t, 2)
		zfstest.RealZpool(t, "tank", disks[0])
		zfstest.RealZpool(t, "other", disks[1])
		h := realHarness(t)
		h.Twin = func(v provision.Volume) func() {
			theirs := "other/berth-volumes"
			zfstest.Run(t, "zfs", "create", "-o", "mountpoint=none", "-o", "canmount=off", theirs)
			zfstest.Run(t, "zfs", "snapshot", volumes+v.ID+"@twin")
			zfstest.Run(t, "sh", "-c", "zfs send -p "+volumes+v.ID+"@twin | zfs receive "+theirs+"/"+v.ID)
			zfstest.Run(t, "zfs", "destroy", volumes+v.ID+"@twin")
			return func() {
				zfstest.Run(t, "udevadm", "settle") // udev looks at every new device
				zfstest.Run(t, "zfs", "destroy", "-R", theirs)
			}
		}
		h.Away = func() func() {
			zfstest.Run(t, "udevadm", "settle")
			zfstest.Run(t, "zpool", "export", "tank")
			return func() { zfstest.Run(t, "zpool", "import", "-d", "/dev", "tank") }
		}
		return h
	}
	conformance.RunTwins(t, start)
	conformance.RunAway(t, start)
}

func realHarness(t *testing.T) conformance.Harness {
	pool := zfstest.RealPool(t, parent)
	c, _, made := zfstest.RealConfig(t)
	c.RefreshInterval = time.Second
	p, stop := start(t, c)
	return conformance.Harness{
		Provisioner: p,
		Pool:        pool,
		Restart: func() provision.Provisioner {
			stop()
			c.Devices = &kernel.Devices{}
			p, stop = start(t, c)
			return p
		},
		PutForeign: func(name string, size int64) { zfstest.RealForeign(t, volumes+name, size) },
		Open: func(v provision.Volume) func() {
			f, err := os.Open(v.Content.Source)
			if err != nil {
				t.Fatal(err)
			}
			return func() { f.Close() }
		},
		Mislead:  func(v, other provision.Volume) { blockdevtest.Mislead(t, v.Content.Source, other.Content.Source) },
		Scramble: func(v provision.Volume) { blockdevtest.WriteAt(t, v.Content.Source, strings.Repeat("\x00", 1<<20), 0) },
		Write:    func(v provision.Volume, text string) { blockdevtest.WriteAt(t, v.Content.Source, text, 0) },
		Read:     func(v provision.Volume, bytes int) string { return blockdevtest.ReadAt(t, v.Content.Source, bytes, 0) },
		WriteAt: func(v provision.Volume, text string, offset int64) {
			blockdevtest.WriteAt(t, v.Content.Source, text, offset)
		},
		ReadAt: func(v provision.Volume, bytes int, offset int64) string {
			return blockdevtest.ReadAt(t, v.Content.Source, bytes, offset)
		},
		Formats: made.Of,
	}
}

func TestProcessesPerOperationOnRealZFS(t *testing.T) {
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	pool := zfstest.RealPool(t, parent)
	c, counter, _ := zfstest.RealConfig(t)
	now := time.Now()
	c.Now = func() time.Time { return now } // a reading stays recent however slow the machine is
	c.RefreshInterval = time.Hour           // and nothing else reads the zpool
	p, _ := start(t, c)
	awaitChange(t, p)
	ctx := t.Context()
	if err := p.Healthy(); err != nil {
		t.Errorf("programs and module of one distribution: %v", err)
	}
	r := provision.CreateRequest{ID: "pvc-0", Pool: pool, Size: 64 << 20, Labels: map[string]string{"claim": "data"}}
	if _, err := p.Create(ctx, r); err != nil { // which makes the hidden filesystems
		t.Fatal(err)
	}
	if _, err := p.Report(ctx); err != nil {
		t.Fatal(err)
	}
	counter.Take()
	create := func(id string, from provision.Source) func() error {
		return func() error {
			r := r
			r.ID, r.Source = id, from
			_, err := p.Create(ctx, r)
			return err
		}
	}
	type processes = map[string]int
	for _, step := range []struct {
		name string
		do   func() error
		want processes
	}{
		{"create", create("pvc-1", provision.Source{}), processes{"zfs create": 1}},
		{"format", func() error {
			_, err := p.Format(ctx, provision.FormatRequest{ID: "pvc-1", Filesystem: "ext4"})
			return err
		}, processes{"mkfs.ext4": 1, "zfs set": 1}},
		{"get", func() error { _, err := p.Get(ctx, "pvc-1"); return err }, processes{}},
		{"snapshot", func() error {
			_, err := p.Snapshot(ctx, provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"})
			return err
		}, processes{"zfs snapshot": 1, "zfs list": 1}},
		{"restore", create("pvc-2", provision.Source{Snapshot: "snap-1"}), processes{"zfs clone": 1}},
		{"expand", func() error {
			_, err := p.Expand(ctx, provision.ExpandRequest{ID: "pvc-1", Size: 128 << 20})
			return err
		}, processes{"zfs set": 2}},
		{"delete a copy", func() error { return p.Delete(ctx, "pvc-2") }, processes{"zfs list": 1, "zfs destroy": 1}},
		{"delete a snapshot", func() error { return p.DeleteSnapshot(ctx, "snap-1") }, processes{"zfs list": 1, "zfs destroy": 1}},
		{"delete", func() error { return p.Delete(ctx, "pvc-1") }, processes{"zfs list": 1, "zfs destroy": 1}},
	} {
		zfstest.Run(t, "udevadm", "settle")
		started := time.Now()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		t.Logf("%s took %v", step.name, time.Since(started).Round(time.Millisecond))
		p.Wait()
		if _, err := p.Report(ctx); err != nil {
			t.Fatal(err)
		}
		if got := counter.Take(); !cmp.Equal(got, step.want) {
			t.Errorf("%s and a report started %v, want %v", step.name, got, step.want)
		}
	}
}

func TestADeletionSparesAZvolThatGotTheNameMeanwhileOnRealZFS(t *testing.T) {
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	pool := zfstest.RealPool(t, parent)
	c, _, _ := zfstest.RealConfig(t)
	p, err := zfs.New(c) // nothing watches for changes by others
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: pool, Size: 64 << 20}); err != nil {
		t.Fatal(err)
	}
	restarted, err := zfs.New(c) // and reads the volume's guid
	if err != nil {
		t.Fatal(err)
	}
	if _, err := restarted.Report(t.Context()); err != nil {
		t.Fatal(err)
	}
	zfstest.Run(t, "udevadm", "settle")
	zfstest.Run(t, "zfs", "rename", volumes+"pvc-1", parent+"/renamed")
	zfstest.Run(t, "zfs", "create", "-V", "64m", "-o", "berth.dev:volume=pvc-1", volumes+"pvc-1")
	zfstest.Run(t, "udevadm", "settle")
	if err := restarted.Delete(t.Context(), "pvc-1"); !errors.Is(err, provision.ErrUnavailable) {
		t.Errorf("deleting it: %v, want ErrUnavailable", err)
	}
	zfstest.Run(t, "zfs", "list", volumes+"pvc-1") // fails the test if it is gone
}
