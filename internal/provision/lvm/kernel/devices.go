package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Devices are the block devices of this machine.
type Devices struct{}

// Exists says whether a block device is there.
func (Devices) Exists(path string) bool {
	_, err := number(path)
	return err == nil
}

// Same says whether two paths lead to one block device.
func (Devices) Same(a, b string) bool {
	if a == b {
		return true
	}
	na, errA := number(a)
	nb, errB := number(b)
	return errA == nil && errB == nil && na == nb
}

// Mapping returns the device-mapper name and uuid of a device.
func (Devices) Mapping(path string) (name, uuid string, err error) {
	n, err := number(path)
	if err != nil {
		return "", "", err
	}
	dir := fmt.Sprintf("/sys/dev/block/%d:%d/dm/", unix.Major(n), unix.Minor(n))
	if name, err = readLine(dir + "name"); err != nil {
		return "", "", err
	}
	uuid, err = readLine(dir + "uuid")
	return name, uuid, err
}

// Sequence returns the sequence number in the LVM metadata of a physical volume.
func (Devices) Sequence(device string) (uint64, error) {
	// LVM writes past the page cache and so must be read past it.
	fd, err := unix.Open(device, unix.O_RDONLY|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("opening %s: %w", device, err)
	}
	defer unix.Close(fd)
	n, err := readSequence(aligned(fd))
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", device, err)
	}
	return n, nil
}

func number(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, fmt.Errorf("looking at %s: %w", path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFBLK {
		return 0, fmt.Errorf("%s is no block device", path)
	}
	return st.Rdev, nil
}

func readLine(path string) (string, error) {
	b, err := os.ReadFile(filepath.Clean(path))
	return strings.TrimSpace(string(b)), err
}

// aligned reads a file opened with O_DIRECT in whole blocks, into memory that
// begins at a block.
type aligned int

const block = 4096

func (fd aligned) ReadAt(p []byte, off int64) (int, error) {
	start := off / block * block
	end := (off + int64(len(p)) + block - 1) / block * block
	buffer := make([]byte, end-start+block)
	skip := (block - int(uintptr(unsafe.Pointer(&buffer[0]))%block)) % block //nolint:gosec // alignment only
	buffer = buffer[skip : skip+int(end-start)]
	n, err := unix.Pread(int(fd), buffer, start)
	if err != nil {
		return 0, err
	}
	if n < int(off-start)+len(p) {
		return 0, fmt.Errorf("the device ends at %d", start+int64(n))
	}
	return copy(p, buffer[off-start:]), nil
}
