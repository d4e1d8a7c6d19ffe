//go:build platform

package faultydisk

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/run"
)

// Disk is one whose table can be exchanged.
type Disk struct {
	t             *testing.T
	name, backing string
	size          int64
}

// New makes an empty disk out of the beginning of a real one, for the time of a test.
func New(t *testing.T, name, backing string, size int64) *Disk {
	t.Helper()
	d := &Disk{t: t, name: name, backing: backing, size: size}
	zero(t, backing, size)
	d.create(d.Works())
	t.Cleanup(func() {
		d.remove()
		zero(t, backing, size)
	})
	return d
}

// Path is that of its device.
func (d *Disk) Path() string { return "/dev/mapper/" + d.name }

func (d *Disk) create(table string) {
	d.t.Helper()
	Dmsetup(d.t, "create", d.name, "--table", table)
}

func (d *Disk) remove() {
	d.t.Helper()
	Dmsetup(d.t, "remove", "--retry", d.name)
}

// Load exchanges the disk's table while it is in use.
func (d *Disk) Load(table string) {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "table")
	if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
		d.t.Fatal(err)
	}
	d.Suspend()
	Dmsetup(d.t, "load", d.name, file)
	d.Resume()
}

// Heal makes it a disk without faults.
func (d *Disk) Heal() { d.t.Helper(); d.Load(d.Works()) }

// Suspend has it answer nothing until Resume.
func (d *Disk) Suspend() { d.t.Helper(); Dmsetup(d.t, "suspend", "--nolockfs", d.name) }

// Resume has it answer again.
func (d *Disk) Resume() { d.t.Helper(); Dmsetup(d.t, "resume", d.name) }

// Dmsetup runs a command of the device mapper and returns what it printed.
func Dmsetup(t *testing.T, args ...string) string {
	t.Helper()
	out, err := run.Exec{}.Change(run.Command{Operation: args[0], Program: "dmsetup", Args: args})
	if err != nil {
		t.Fatalf("dmsetup %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}

// Tell sends a message to a device of the device mapper.
func Tell(name, message string) error {
	_, err := run.Exec{}.Change(run.Command{Operation: "message", Program: "dmsetup", Args: []string{"message", name, "0", message}})
	return err
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
	Settled(t, f)
}

// Settled has what was written on the device, and nothing of it in the page cache.
func Settled(t *testing.T, f *os.File) {
	t.Helper()
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetInt(int(f.Fd()), unix.BLKFLSBUF, 0); err != nil {
		t.Fatal(err)
	}
}
