//go:build platform

package lvmtest

import (
	"flag"
	"os"
	"strconv"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/run"
)

// An operation on real LVM takes a second in a guest; a few sequences of operations are
// enough there, and flags can ask for more.
func init() {
	for name, value := range map[string]string{"rapid.checks": "3", "rapid.steps": "15"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
}

// Disks returns the disks that a test may overwrite; it fails without them.
func Disks(t testing.TB, n int) []string {
	t.Helper()
	return blockdevtest.Disks(t, n)
}

// LVM runs an LVM command, as an administrator would: on the machine itself, where udev manages
// the device nodes. It does not touch those that the provisioner's LVM made.
func LVM(t testing.TB, args ...string) string {
	t.Helper()
	return command(t, args...)
}

// withoutUdev makes LVM manage the device nodes itself, as the provisioner does by default.
const withoutUdev = "activation{udev_sync=0 udev_rules=0 monitoring=0} devices{obtain_device_list_from_udev=0}"

// tidy runs an LVM command that leaves no device node behind, whichever LVM made the node.
func tidy(t testing.TB, args ...string) {
	t.Helper()
	command(t, append([]string{args[0], "--config", withoutUdev}, args[1:]...)...)
}

func command(t testing.TB, args ...string) string {
	t.Helper()
	out, err := run.Exec{}.Change(run.Command{Operation: args[0], Program: "lvm", Args: args})
	if err != nil {
		t.Fatalf("lvm %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// RealGroup makes an empty volume group on a disk for the time of a test.
func RealGroup(t testing.TB, name, disk string) provision.PoolRef {
	t.Helper()
	LVM(t, "vgcreate", "--yes", "-ff", name, disk)
	t.Cleanup(func() {
		tidy(t, "vgremove", "--yes", "--force", name)
		tidy(t, "pvremove", "--yes", disk)
	})
	return provision.PoolRef{Type: provision.LVM, Name: name}
}

// EmptyAfter removes the logical volumes that a test leaves in a volume group or a thin pool.
func EmptyAfter(t testing.TB, pool string) {
	t.Helper()
	group, thin, _ := strings.Cut(pool, "/")
	all := []string{"lvremove", "--yes", group}
	if thin != "" {
		all = append(all, "--select", "pool_lv="+thin)
	}
	t.Cleanup(func() { tidy(t, all...) })
}

// RealForeign makes a logical volume that is not Berth's.
func RealForeign(t testing.TB, group, name string, size int64) {
	t.Helper()
	LVM(t, "lvcreate", "--yes", "--activate", "n", "--zero", "n", "--wipesignatures", "n",
		"--size", strconv.FormatInt(size, 10)+"b", "--name", name, group)
}

// RealThinPool makes an empty thin pool in a volume group for the time of a test. The pool
// fails writes that do not fit instead of letting them wait.
func RealThinPool(t testing.TB, group, name string, size int64, options ...string) provision.PoolRef {
	t.Helper()
	pool := group + "/" + name
	LVM(t, append([]string{"lvcreate", "--yes", "--type", "thin-pool", "--size", strconv.FormatInt(size, 10) + "b", "--name", name, group}, options...)...)
	t.Cleanup(func() { tidy(t, "lvremove", "--yes", pool) })
	LVM(t, "lvchange", "--yes", "--errorwhenfull", "y", pool)
	return provision.PoolRef{Type: provision.LVMThin, Name: pool}
}

// RealForeignThin makes a thin volume that is not Berth's.
func RealForeignThin(t testing.TB, pool, name string, size int64) {
	t.Helper()
	group, thin, _ := strings.Cut(pool, "/")
	LVM(t, "lvcreate", "--yes", "--type", "thin", "--thinpool", thin, "--virtualsize", strconv.FormatInt(size, 10)+"b", "--name", name, group)
}

// RealHarness is a conformance harness without its provisioner.
func RealHarness(t testing.TB, pool provision.PoolRef, formats func(id string) int) conformance.Harness {
	foreign := RealForeign
	if pool.Type == provision.LVMThin {
		foreign = RealForeignThin
	}
	return conformance.Harness{
		Pool: pool,
		// The wiping has a suite of its own; here it would only take time.
		Wipe:       provision.WipeNone,
		PutForeign: func(name string, size int64) { foreign(t, pool.Name, name, size) },
		Open: func(v provision.Volume) func() {
			f, err := os.Open(v.Content.Source)
			if err != nil {
				t.Fatal(err)
			}
			return func() { f.Close() }
		},
		Mislead:  func(v, other provision.Volume) { blockdevtest.Mislead(t, v.Content.Source, other.Content.Source) },
		Scramble: func(v provision.Volume) { Overwrite(t, v.Content.Source, 1<<20) },
		WriteAt: func(v provision.Volume, text string, offset int64) {
			blockdevtest.WriteAt(t, v.Content.Source, text, offset)
		},
		ReadAt: func(v provision.Volume, bytes int, offset int64) string {
			return blockdevtest.ReadAt(t, v.Content.Source, bytes, offset)
		},
		Formats: formats,
		Write:   func(v provision.Volume, text string) { blockdevtest.WriteAt(t, v.Content.Source, text, 0) },
		Read:    func(v provision.Volume, bytes int) string { return blockdevtest.ReadAt(t, v.Content.Source, bytes, 0) },
	}
}

// Overwrite destroys the beginning of a device.
func Overwrite(t testing.TB, device string, size int) {
	t.Helper()
	blockdevtest.WriteAt(t, device, strings.Repeat("\x00", size), 0)
}
