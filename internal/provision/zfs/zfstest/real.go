//go:build platform

package zfstest

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/kernel"
	"berth.dev/berth/internal/provision/zfs/zpool"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

// Run runs a command, as an administrator would, and returns its output.
func Run(t testing.TB, program string, args ...string) string {
	t.Helper()
	out, err := run.Exec{}.Change(run.Command{Operation: program, Program: program, Args: args})
	if err != nil {
		t.Fatalf("%s %s: %v", program, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// RealZpool makes a zpool on a disk for the time of a test.
func RealZpool(t testing.TB, name, disk string) {
	t.Helper()
	Run(t, "modprobe", "zfs")
	Run(t, "zpool", "create", "-f", "-O", "mountpoint=none", name, disk)
	t.Cleanup(func() {
		Run(t, "udevadm", "settle") // udev looks at every new device
		Run(t, "zpool", "destroy", "-f", name)
	})
}

// RealPool makes a filesystem that is a pool for the time of a test, and removes it
// with all that is in it.
func RealPool(t testing.TB, dataset string) provision.PoolRef {
	t.Helper()
	Run(t, "zfs", "create", "-o", "berth.dev:pool="+dataset, dataset)
	t.Cleanup(func() {
		Run(t, "udevadm", "settle")
		Run(t, "zfs", "destroy", "-R", dataset)
	})
	return provision.PoolRef{Type: provision.ZFS, Name: provision.ZFSPrefix + dataset}
}

// RealForeign makes a zvol that is not Berth's, holds something and takes just the room that is
// charged for a size. If the filesystem above it is missing, RealForeign makes it as Berth does.
func RealForeign(t testing.TB, dataset string, size int64) {
	t.Helper()
	above := dataset[:strings.LastIndexByte(dataset, '/')]
	if _, err := (run.Exec{}).Change(run.Command{Operation: "zfs list", Program: "zfs", Args: []string{"list", above}}); err != nil {
		Run(t, "zfs", "create", "-o", "mountpoint=none", "-o", "canmount=off", above)
	}
	whole := provision.RoundUp(size, zpool.Unit)
	Run(t, "zfs", "create", "-s", "-V", strconv.FormatInt(whole, 10), "-o", "refreservation="+strconv.FormatInt(zpool.Charge(whole), 10), dataset)
	Run(t, "udevadm", "settle")
	Run(t, "dd", "if=/dev/urandom", "of=/dev/zvol/"+dataset, "bs=1M", "count=2", "oflag=direct")
	Run(t, "zpool", "sync")
}

// Alone shows a provisioner one of the zpools of this machine.
type Alone struct {
	*kernel.Devices
	Name string
}

// Pools implements zfs.Devices.
func (a Alone) Pools() (found []zfs.Pool, err error) {
	all, err := a.Devices.Pools()
	for _, p := range all {
		if p.Name == a.Name {
			found = append(found, p)
		}
	}
	return found, err
}

// RealConfig returns a provisioner's config for this machine, a counter of its processes, and
// a record of the filesystems that it makes.
func RealConfig(t testing.TB) (zfs.Config, *runtest.Counter, *conformance.Formats) {
	t.Helper()
	counter := runtest.Count(run.Exec{})
	mounter, err := linux.New(linux.Config{Runner: counter})
	if err != nil {
		t.Fatal(err)
	}
	made := &conformance.Formats{Mkfs: mounter.Mkfs}
	return zfs.Config{Runner: counter, Devices: &kernel.Devices{}, Mkfs: made.Make, Pause: func(context.Context) {}}, counter, made
}
