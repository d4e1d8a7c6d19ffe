//go:build platform

package faults

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/run"
)

const (
	mib = int64(1 << 20)
	// sectorSize is the unit of the device mapper's tables.
	sectorSize = 512

	diskName = "berth-disk"
	diskPath = "/dev/mapper/" + diskName
)

// disk is a physical volume whose table can be exchanged.
type disk struct {
	t       *testing.T
	backing string
	size    int64
}

// newDisk makes an empty disk out of the beginning of a real one. LVM sees it alone: what
// it is made of bears the same label.
func newDisk(t *testing.T, backing string, size int64) *disk {
	t.Helper()
	d := &disk{t: t, backing: backing, size: size}
	d.seeOnly()
	zero(t, backing, size)
	d.create(d.works())
	t.Cleanup(func() {
		d.remove()
		zero(t, backing, size)
	})
	return d
}

// seeOnly has all LVM commands of this process read a configuration of their own.
func (d *disk) seeOnly() {
	dir := d.t.TempDir()
	config := fmt.Sprintf("devices {\n\tglobal_filter = [ \"a|^%s$|\", \"r|.*|\" ]\n\tuse_devicesfile = 0\n}\n", diskPath)
	if err := os.WriteFile(filepath.Join(dir, "lvm.conf"), []byte(config), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.t.Setenv("LVM_SYSTEM_DIR", dir)
}

func (d *disk) create(table string) {
	d.t.Helper()
	dmsetup(d.t, "create", diskName, "--table", table)
}

// remove takes the disk away with all that the device mapper still has on it.
func (d *disk) remove() {
	d.t.Helper()
	for {
		idle := devices(d.t, 0)
		if len(idle) == 0 {
			break
		}
		for _, name := range idle {
			dmsetup(d.t, "remove", "--force", "--retry", name)
		}
	}
	dmsetup(d.t, "remove", "--retry", diskName)
}

// devices are the names of the logical volumes' devices that the kernel has and that are
// open so often at most.
func devices(t *testing.T, opened int) (names []string) {
	t.Helper()
	for line := range strings.Lines(dmsetup(t, "info", "--columns", "--noheadings", "--separator", " ", "--options", "name,open")) {
		name, count, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.Atoi(count); err == nil && n <= opened && strings.HasPrefix(name, "vg--") {
			names = append(names, name)
		}
	}
	return names
}

// works is the table of a disk without faults.
func (d *disk) works() string { return line(0, d.size, "linear", d.backing, 0) }

// line is that of a table: what so many bytes from one on are mapped to.
func line(from, length int64, target string, options ...any) string {
	words := []string{strconv.FormatInt(from/sectorSize, 10), strconv.FormatInt(length/sectorSize, 10), target}
	for _, o := range options {
		words = append(words, fmt.Sprint(o))
	}
	return strings.Join(words, " ") + "\n"
}

func dmsetup(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run.Exec{}.Change(run.Command{Operation: args[0], Program: "dmsetup", Args: args})
	if err != nil {
		t.Fatalf("dmsetup %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// zero overwrites the beginning of a device.
func zero(t *testing.T, device string, size int64) {
	t.Helper()
	write(t, device, make([]byte, size))
}

// write makes the beginning of a device what it shall be, on the device itself.
func write(t *testing.T, device string, content []byte) {
	t.Helper()
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	settled(t, f)
}

// settled has what was written on the device, and nothing of it in the page cache.
func settled(t *testing.T, f *os.File) {
	t.Helper()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetInt(int(f.Fd()), unix.BLKFLSBUF, 0); err != nil {
		t.Fatal(err)
	}
}
