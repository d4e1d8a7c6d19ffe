package blockdev

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

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

// ReadLine returns the content of one of the kernel's files, without space around it.
func ReadLine(path string) (string, error) {
	b, err := os.ReadFile(filepath.Clean(path))
	return strings.TrimSpace(string(b)), err
}
