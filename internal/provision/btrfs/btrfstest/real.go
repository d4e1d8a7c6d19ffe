//go:build platform

package btrfstest

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/run"
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

// Disk returns the node of an empty disk for the time of a test.
func Disk(t testing.TB, size int64) string {
	t.Helper()
	return DiskIn(t, t.TempDir(), size)
}

// DiskIn is Disk for a disk whose data is in a directory.
func DiskIn(t testing.TB, dir string, size int64) string {
	t.Helper()
	file := filepath.Join(dir, "disk")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	node := Run(t, "losetup", "--find", "--show", file)
	t.Cleanup(func() { Run(t, "losetup", "--detach", node) })
	return node
}

// Filesystem is one that an administrator made and mounted.
type Filesystem struct {
	t testing.TB
	// Disk it is on, Top where it is mounted, and FSID its UUID.
	Disk, Top, FSID string
	Ref             provision.PoolRef
}

// Size of the disk of a filesystem, unless a test says otherwise.
const Size = 2 << 30

// New makes a filesystem with simple quotas on a disk of its own.
func New(t testing.TB, label string, size int64) *Filesystem {
	t.Helper()
	return On(t, label, Disk(t, size))
}

// On makes a filesystem on a disk.
func On(t testing.TB, label, disk string) *Filesystem {
	t.Helper()
	f := &Filesystem{t: t, Disk: disk, Top: t.TempDir(), Ref: provision.PoolRef{Type: provision.Btrfs, Name: provision.BtrfsPrefix + label}}
	Run(t, "mkfs.btrfs", "-q", "-L", label, f.Disk)
	f.FSID = Run(t, "btrfs", "inspect-internal", "dump-super", f.Disk)
	for line := range strings.Lines(f.FSID) {
		if rest, ok := strings.CutPrefix(line, "fsid\t"); ok {
			f.FSID = strings.TrimSpace(rest)
		}
	}
	f.Mount()
	t.Cleanup(f.Unmount)
	return f
}

// Mount mounts it.
func (f *Filesystem) Mount() {
	f.t.Helper()
	if err := unix.Mount(f.Disk, f.Top, "btrfs", 0, ""); err != nil {
		f.t.Fatal(err)
	}
}

// Unmount unmounts it, if it is mounted.
func (f *Filesystem) Unmount() {
	f.t.Helper()
	if err := unix.Unmount(f.Top, 0); err != nil && !errors.Is(err, unix.EINVAL) {
		f.t.Fatal(err)
	}
}

// Data returns where the data of a volume is.
func (f *Filesystem) Data(id string) string {
	return filepath.Join(f.Top, ".berth/volumes", id, "data")
}

// Put allocates a file of a size at a path, with its directories.
func (f *Filesystem) Put(path string, size int64) {
	f.t.Helper()
	path = filepath.Join(f.Top, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.t.Fatal(err)
	}
	file, err := os.Create(path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer file.Close()
	if err := unix.Fallocate(int(file.Fd()), 0, 0, size); err != nil {
		f.t.Fatal(err)
	}
	if err := unix.Syncfs(int(file.Fd())); err != nil {
		f.t.Fatal(err)
	}
}

// Fill writes a file of random-looking data until it has a size or cannot be written, and returns how many bytes it
// has then.
func (f *Filesystem) Fill(path string, size int64) (written int64, err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	block := []byte(strings.Repeat(strconv.Itoa(os.Getpid()), 1<<20))[:1<<20]
	for written < size {
		n, err := file.Write(block)
		written += int64(n)
		if err == nil {
			err = file.Sync()
		}
		if err != nil {
			return written, err
		}
	}
	return written, nil
}
