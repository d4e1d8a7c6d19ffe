package blockdevtest

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/blockdev"
)

// Mislead has a path lead to the device of another one, until others make it anew: whatever was
// there, a node or a link, goes, and a node of that device's number takes its place. Where a
// link leads to a node in the directory of device-mapper nodes, that one does.
func Mislead(t testing.TB, path, to string) {
	t.Helper()
	number, err := blockdev.Number(to)
	if err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(path); err == nil && filepath.Dir(target) == "/dev/mapper" {
		path = target
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(path, unix.S_IFBLK|0o600, int(number)); err != nil { //nolint:gosec // a device number
		t.Fatal(err)
	}
}
