package blockdev

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Same says whether two paths lead to one block device.
func Same(a, b string) bool {
	if a == b {
		return true
	}
	na, errA := Number(a)
	nb, errB := Number(b)
	return errA == nil && errB == nil && na == nb
}

// Number returns the device number of a block device.
func Number(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, fmt.Errorf("looking at %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return 0, fmt.Errorf("%s is no block device", path)
	}
	return st.Rdev, nil
}

// attributeSize is the most that the kernel shows of an attribute in sysfs: a page.
const attributeSize = 4096

// ReadLine returns the content of an attribute in sysfs, without space around it. One read gets all
// of it. os.ReadFile would make five more system calls, and Berth reads the attributes of every
// block device before each change of a volume group.
func ReadLine(path string) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var page [attributeSize]byte
	n, err := unix.Read(fd, page[:])
	if err != nil {
		return "", &os.PathError{Op: "read", Path: path, Err: err}
	}
	return string(bytes.TrimSpace(page[:n])), nil
}
