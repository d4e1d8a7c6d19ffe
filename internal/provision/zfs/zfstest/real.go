//go:build platform

package zfstest

import (
	"context"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"

	"berth.dev/berth/internal/mount/linux"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/kernel"
	"berth.dev/berth/internal/run"
)

// DisksVariable names the disks that platform tests may overwrite, with commas.
const DisksVariable = "BERTH_TEST_DISKS"

// Disks returns the disks that a test may overwrite; it fails without them.
func Disks(t testing.TB, n int) []string {
	t.Helper()
	disks := strings.FieldsFunc(os.Getenv(DisksVariable), func(r rune) bool { return r == ',' })
	if len(disks) < n || os.Geteuid() != 0 {
		t.Fatalf("this test overwrites disks: run it as root in a machine of its own and name %d disks in %s", n, DisksVariable)
	}
	return disks[:n]
}

// Run runs a command, as an administrator would, and returns what it printed.
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
		Run(t, "udevadm", "settle") // it looks at every new device
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

// RealForeign makes a zvol that is not Berth's and takes just what is charged for a
// size.
func RealForeign(t testing.TB, dataset string, size int64) {
	t.Helper()
	whole := provision.RoundUp(size, zfs.Unit)
	Run(t, "zfs", "create", "-s", "-V", strconv.FormatInt(whole, 10), "-o", "refreservation="+strconv.FormatInt(zfs.Charge(whole), 10), dataset)
}

// Mkfs makes filesystems and counts them by volume.
type Mkfs struct {
	mounter *linux.Mounter
	mu      sync.Mutex
	made    map[string]int
}

// Make makes a filesystem.
func (m *Mkfs) Make(ctx context.Context, device, fs, options string) error {
	m.mu.Lock()
	if m.made == nil {
		m.made = map[string]int{}
	}
	m.made[path.Base(device)]++
	m.mu.Unlock()
	return m.mounter.Mkfs(ctx, device, fs, options)
}

// Of is how many were made on a volume.
func (m *Mkfs) Of(id string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.made[id]
}

// RealConfig is a provisioner's over this machine, with what counts its processes.
func RealConfig(t testing.TB) (zfs.Config, *run.Counter, *Mkfs) {
	t.Helper()
	counter := run.Count(run.Exec{})
	mounter, err := linux.New(linux.Config{Runner: counter})
	if err != nil {
		t.Fatal(err)
	}
	m := &Mkfs{mounter: mounter}
	return zfs.Config{Runner: counter, Devices: &kernel.Devices{}, Mkfs: m.Make}, counter, m
}

// Write puts a text at the beginning of a volume, to where a snapshot finds it.
func Write(t testing.TB, device, text string) {
	t.Helper()
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
}

// Read returns the beginning of a volume.
func Read(t testing.TB, device string, bytes int) string {
	t.Helper()
	f, err := os.Open(device)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, bytes)
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return string(b)
}
