package blockdev

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
)

// deviceDir has what the kernel says of each block device, by its number.
const deviceDir = "/sys/dev/block"

// Prove returns nil if the device that is open is the one of an identity. It stays so until
// it is closed: the kernel gives the number of a device to no other while that is open.
func Prove(fd int, path string, is provision.Identity) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("looking at %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return fmt.Errorf("%w: %s is no block device", provision.ErrNotFound, path)
	}
	got, err := identify(deviceDir, st.Rdev)
	if err == nil && got == "" {
		got, err = zvol(fd)
	}
	return compare(path, got, err, is)
}

// Leads returns nil if a path leads to the device of an identity. It opens nothing, so it
// holds up no program, and it cannot tell zvols apart: they are not to be asked by it.
func Leads(path string, is provision.Identity) error {
	n, err := Number(path)
	if err != nil {
		return err
	}
	got, err := identify(deviceDir, n)
	return compare(path, got, err, is)
}

// IdentityOf returns the identity of the device of a number, as far as the kernel says it without
// opening the device; empty if it does not.
func IdentityOf(number uint64) (provision.Identity, error) { return identify(deviceDir, number) }

// Find returns the number of the device of an identity: where a path leads, or wherever else the
// kernel has it; ErrNotFound if it has none. It opens nothing, as Leads does not.
func Find(path string, is provision.Identity) (uint64, error) {
	if n, err := Number(path); err == nil {
		if got, err := identify(deviceDir, n); compare(path, got, err, is) == nil {
			return n, nil
		}
	}
	return find(deviceDir, is)
}

func find(dir string, is provision.Identity) (uint64, error) {
	if is == "" {
		return 0, fmt.Errorf("%w: it is not known which device it is", provision.ErrUnavailable)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("%w: listing block devices: %w", provision.ErrUnavailable, err)
	}
	for _, e := range entries {
		var major, minor uint32
		if _, err := fmt.Sscanf(e.Name(), "%d:%d", &major, &minor); err != nil {
			continue
		}
		n := unix.Mkdev(major, minor)
		if got, err := identify(dir, n); err == nil && got == is {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%w: there is no device %s", provision.ErrNotFound, is)
}

func compare(path string, got provision.Identity, err error, is provision.Identity) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("%w: %s leads to no device", provision.ErrUnavailable, path)
	case err != nil:
		return fmt.Errorf("%w: asking what %s is: %w", provision.ErrUnavailable, path, err)
	case is == "":
		return fmt.Errorf("%w: it is not known which device %s is to be", provision.ErrUnavailable, path)
	case got != is:
		return fmt.Errorf("%w: %s is another device: %s, not %s", provision.ErrUnavailable, path, cmp.Or(got, "of an unknown kind"), is)
	}
	return nil
}

// identify returns what the kernel says of a device without being asked through it; empty for
// what it says nothing of, such as a zvol.
func identify(dir string, number uint64) (provision.Identity, error) {
	dir = filepath.Join(dir, fmt.Sprintf("%d:%d", unix.Major(number), unix.Minor(number)))
	name, err := ReadLine(filepath.Join(dir, "dm/name"))
	if err == nil {
		uuid, err := ReadLine(filepath.Join(dir, "dm/uuid"))
		return provision.MappedIdentity(name, uuid), err
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if _, err := os.Stat(dir); err != nil {
		return "", err // there is no such device
	}
	if _, err := os.Stat(filepath.Join(dir, "partition")); err != nil {
		return Whole(dir), nil //nolint:nilerr // no partition
	}
	return partition(dir)
}

// Whole returns the identity of a whole disk, by its directory in sysfs; empty if the disk says
// nothing of itself, as a zvol does not.
func Whole(dir string) provision.Identity {
	disk := DiskIdentity(dir)
	if _, err := os.Stat(filepath.Join(dir, "loop")); err == nil {
		disk = "loop"
	}
	if disk == "" {
		return ""
	}
	return provision.WholeIdentity(DiskSequence(dir), disk)
}

// Sector is what the kernel counts disks and partitions in, whatever they do.
const Sector = 512

func partition(dir string) (provision.Identity, error) {
	dir, err := filepath.EvalSymlinks(dir) // below its disk
	if err != nil {
		return "", err
	}
	var place [2]int64
	for i, name := range []string{"start", "size"} {
		text, err := ReadLine(filepath.Join(dir, name))
		if err == nil {
			place[i], err = strconv.ParseInt(text, 10, 54)
		}
		if err != nil {
			return "", err
		}
	}
	disk := filepath.Dir(dir)
	return provision.PartitionIdentity(DiskSequence(disk), DiskIdentity(disk), place[0]*Sector, place[1]*Sector), nil
}

// blkZName is the ioctl by which a zvol tells its dataset, and zvolName how long that may be.
const (
	blkZName = 0x8100127d
	zvolName = 256
)

// Zvol asks a device that is open for its dataset.
func Zvol(fd int) (string, error) {
	var name [zvolName]byte
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), blkZName, uintptr(unsafe.Pointer(&name[0]))); errno != 0 { //nolint:gosec // the kernel fills it
		return "", errno
	}
	end := bytes.IndexByte(name[:], 0)
	if end < 0 {
		return "", errors.New("the name has no end")
	}
	return string(name[:end]), nil
}

// zvol is the identity of a device if it is a zvol; empty if it is none.
func zvol(fd int) (provision.Identity, error) {
	name, err := Zvol(fd)
	if errors.Is(err, unix.ENOTTY) || errors.Is(err, unix.EINVAL) {
		return "", nil
	}
	return provision.ZvolIdentity(name), err
}
