//go:build platform

package faults

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"berth.dev/berth/internal/provision/lvm"
	"berth.dev/berth/internal/provision/lvm/lvmtest"
	"berth.dev/berth/internal/run"
)

// metadata is what LVM keeps for itself at the beginning of a physical volume.
const metadata = mib

// load exchanges the disk's table while it is in use.
func (d *disk) load(table string) {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "table")
	if err := os.WriteFile(file, []byte(table), 0o600); err != nil {
		d.t.Fatal(err)
	}
	dmsetup(d.t, "suspend", "--nolockfs", diskName)
	dmsetup(d.t, "load", diskName, file)
	dmsetup(d.t, "resume", diskName)
}

func (d *disk) heal() { d.t.Helper(); d.load(d.works()) }

// fails is the table of one that fails whatever is asked of it.
func (d *disk) fails() string { return line(0, d.size, "error") }

// failsWrites is the table of one that can be read.
func (d *disk) failsWrites() string {
	return line(0, d.size, "flakey", d.backing, 0, 0, 1, 1, "error_writes")
}

// failsBehind is the table of one of which only the beginning works, where LVM's metadata is.
func (d *disk) failsBehind() string {
	return line(0, metadata, "linear", d.backing, 0) + line(metadata, d.size-metadata, "error")
}

// started is a provisioner that looks again soon.
func started(t *testing.T) (p *lvm.Provisioner, stop func()) {
	t.Helper()
	return lvmtest.Start(t, hasty(t))
}

// overwrite writes to a device until that fails; nil if it never does.
func overwrite(device string, size int64) error {
	f, err := os.OpenFile(device, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(slices.Repeat([]byte{0xa5}, int(size)))
	return errors.Join(err, f.Sync(), f.Close())
}

// tell sends a message to a device.
func tell(name, message string) error {
	_, err := run.Exec{}.Change(run.Command{Operation: "message", Program: "dmsetup", Args: []string{"message", name, "0", message}})
	return err
}

// logs is the table of one that writes down what is written to it on another disk.
func (d *disk) logs(log string) string { return line(0, d.size, "log-writes", d.backing, log) }
