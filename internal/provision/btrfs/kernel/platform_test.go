//go:build platform

package kernel

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel gives a disk of a filesystem the name by which it was mounted last. The test plays /dev
// and /sys, so that it needs no device-mapper.
func TestAMappedDiskIsMountedByTheNameThatPeopleUse(t *testing.T) {
	const major, minor = 253, 7
	dev, dir := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "dev"): "253:7\n", filepath.Join(dir, "dm/name"): "theirs\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	disk, mapped := filepath.Join(dev, "dm-7"), filepath.Join(dev, "mapper/theirs")
	node := func(path string, minor uint32) {
		t.Helper()
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(major, minor)))); err != nil {
			t.Fatal(err)
		}
	}
	leads := func(when, want string) {
		t.Helper()
		if node, err := leading(dev, dir, "dm-7"); err != nil || node != want {
			t.Errorf("%s its node is %q, %v; want %s", when, node, err, want)
		}
	}
	node(disk, minor)
	leads("while there is no such name", disk)
	node(mapped, minor+1)
	leads("while the name leads to another disk", disk)
	node(mapped, minor)
	leads("once the name leads to it", mapped)
}
