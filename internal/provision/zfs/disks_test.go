//go:build platform

package zfs_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/kernel"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/run"
)

func requestIn(pool provision.PoolRef, id string) provision.CreateRequest {
	return provision.CreateRequest{ID: id, Pool: pool, Size: 2 * unit}
}

// eventually waits until ok returns true.
func eventually(t *testing.T, ok func() bool, failure string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(3 * time.Minute); !ok(); {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(failure)
		}
	}
}

// A suspended zpool hangs the command that changes it, and no other caller. The change is
// done when the zpool is back.
func TestASuspendedZpoolRecoversOnRealZFS(t *testing.T) {
	disk := blockdevtest.Disks(t, 2)[1]
	sectors := zfstest.Run(t, "blockdev", "--getsz", disk)
	table := map[string]string{"good": fmt.Sprintf("0 %s linear %s 0", sectors, disk), "bad": fmt.Sprintf("0 %s error", sectors)}
	turn := func(to string) {
		zfstest.Run(t, "dmsetup", "suspend", "--noflush", "shaky")
		zfstest.Run(t, "dmsetup", "reload", "shaky", "--table", table[to])
		zfstest.Run(t, "dmsetup", "resume", "shaky")
	}
	zfstest.Run(t, "dmsetup", "create", "shaky", "--table", table["good"])
	t.Cleanup(func() { zfstest.Run(t, "dmsetup", "remove", "--retry", "shaky") })
	zfstest.RealZpool(t, "slow", "/dev/mapper/shaky")
	pool := provision.PoolRef{Type: provision.ZFS, Name: provision.ZFSPrefix + "slow"}
	c, _, _ := zfstest.RealConfig(t)
	p, _ := start(t, c)
	if _, err := p.Create(t.Context(), requestIn(pool, "pvc-1")); err != nil {
		t.Fatal(err)
	}
	problem := func() string {
		pools, err := p.Report(t.Context())
		if err != nil || len(pools) != 1 {
			t.Fatalf("reported %+v, %v", pools, err)
		}
		return pools[0].Problem
	}
	turn("bad")
	impatient, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := p.Create(impatient, requestIn(pool, "pvc-2")); err == nil {
		t.Error("a volume was made on a disk that fails")
	}
	eventually(t, func() bool { return strings.Contains(problem(), "zpool clear slow") }, "the zpool is not reported as suspended")
	if v, err := p.Get(t.Context(), "pvc-1"); err != nil || v.Problem == "" {
		t.Errorf("getting: %+v, %v; want a problem", v, err)
	}
	turn("good")
	zfstest.Run(t, "zpool", "clear", "slow")
	eventually(t, func() bool { return problem() == "" }, "the zpool is not reported as recovered")
	for _, id := range []string{"pvc-1", "pvc-2"} {
		if _, err := p.Create(t.Context(), requestIn(pool, id)); err != nil {
			t.Errorf("after the repair: %v", err)
		}
	}
}

func TestVolumesComeBackWithTheirZpoolOnRealZFS(t *testing.T) {
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	pool := zfstest.RealPool(t, parent)
	c, _, _ := zfstest.RealConfig(t)
	p, stop := start(t, c)
	v, err := p.Create(t.Context(), requestIn(pool, "pvc-1"))
	if err != nil {
		t.Fatal(err)
	}
	blockdevtest.WriteAt(t, v.Content.Source, "kept", 0)
	s, err := p.Snapshot(t.Context(), provision.SnapshotRequest{ID: "snap-1", Volume: "pvc-1"})
	if err != nil {
		t.Fatal(err)
	}
	p.Wait()
	if s, err = p.GetSnapshot(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	zfstest.Run(t, "udevadm", "settle")
	zfstest.Run(t, "zpool", "export", "tank")
	if got, err := p.Get(t.Context(), "pvc-1"); err == nil && got.Problem == "" {
		// The facts are as old as the last look at the kernel.
		eventually(t, func() bool { got, err := p.Get(t.Context(), "pvc-1"); return err == nil && got.Problem != "" }, "the volume has no problem")
	}
	stop()
	zfstest.Run(t, "zpool", "import", "tank")
	zfstest.Run(t, "udevadm", "settle")
	os.Remove(v.Content.Source) // as on a machine without udev
	c.Devices = &kernel.Devices{}
	p, _ = start(t, c)
	if got, err := p.Get(t.Context(), "pvc-1"); err != nil || got != v || blockdevtest.ReadAt(t, got.Content.Source, 4, 0) != "kept" {
		t.Errorf("after the import: %+v, %v; want %+v with its data", got, err, v)
	}
	if got, err := p.GetSnapshot(t.Context(), "snap-1"); err != nil || got != s {
		t.Errorf("after the import: %+v, %v; want %+v", got, err, s)
	}
}

func TestOldBytesAreNeverReadFromANewVolumeOnRealZFS(t *testing.T) {
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	pool := zfstest.RealPool(t, parent)
	c, _, _ := zfstest.RealConfig(t)
	p, _ := start(t, c)
	secret := strings.Repeat("secret! ", 2*unit/8)
	for range conformance.Rounds(t) {
		v, err := p.Create(t.Context(), requestIn(pool, "pvc-1"))
		if err != nil {
			t.Fatal(err)
		}
		if got := blockdevtest.ReadAt(t, v.Content.Source, 2*unit, 0); strings.Trim(got, "\x00") != "" {
			t.Fatal("a new volume is not blank")
		}
		blockdevtest.WriteAt(t, v.Content.Source, secret, 0)
		zfstest.Run(t, "udevadm", "settle")
		if err := p.Delete(t.Context(), "pvc-1"); err != nil {
			t.Fatal(err)
		}
	}
}

// halveReal takes away the reservation and the record that ZFS adds after it made a dataset.
func halveReal(t *testing.T, c run.Command) {
	name := c.Args[len(c.Args)-1]
	zfstest.Run(t, "zfs", "set", "refreservation=none", name)
	for property := range strings.FieldsSeq(zfstest.Run(t, "zfs", "get", "-H", "-s", "local", "-o", "property", "all", name)) {
		if strings.HasPrefix(property, "berth.dev:") {
			zfstest.Run(t, "zfs", "inherit", property, name)
		}
	}
}

// dying is a runner whose process ends at one of its commands.
type dying struct {
	run.Exec
	crash *crash
}

func (d dying) Change(c run.Command) ([]byte, error) {
	return d.crash.around(c, func() ([]byte, error) { return d.Exec.Change(c) })
}

func TestACrashConvergesOnRealZFS(t *testing.T) {
	zfstest.RealZpool(t, "tank", blockdevtest.Disks(t, 1)[0])
	for _, at := range []int{5, 12, 30, 47} {
		t.Run(fmt.Sprint("zvols ", at), func(t *testing.T) { zvols.crashOnRealZFS(t, at) })
	}
	for _, at := range []int{5, 12, 33, 50} {
		t.Run(fmt.Sprint("datasets ", at), func(t *testing.T) { files.crashOnRealZFS(t, at) })
	}
}

func (s story) crashOnRealZFS(t *testing.T, at int) {
	zfstest.RealPool(t, parent)
	c, _, _ := zfstest.RealConfig(t)
	c.Mkfs = (&conformance.Formats{}).Make
	crash := &crash{halve: func(c run.Command) { halveReal(t, c) }, at: at}
	c.Runner = dying{crash: crash}
	begin := func() *zfs.Provisioner {
		p, err := zfs.New(c)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := begin()
	for i := range s.life(t.Context(), p) {
		zfstest.Run(t, "udevadm", "settle")
		err := s.life(t.Context(), p)[i]()
		if p.Wait(); crash.dead {
			crash.dead = false
			p = begin()
			err = s.life(t.Context(), p)[i]()
		}
		if err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	p.Wait()
	want := strings.Join([]string{parent, parent + "/berth-trash", parent + "/berth-volumes"}, "\n")
	if got := zfstest.Run(t, "zfs", "list", "-H", "-t", "all", "-o", "name", "-r", parent); got != want {
		t.Errorf("what is left:\n%s", got)
	}
	if crash.seen < at {
		t.Error("it did not crash")
	}
}
