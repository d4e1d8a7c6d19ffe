package blockdev

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// File is a block device that is open past the page cache.
type File struct{ Aligned }

// Open opens a block device with these flags of open(2) besides those that go past the
// page cache.
func Open(path string, flags int) (File, error) {
	fd, err := unix.Open(path, flags|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if err != nil {
		return File{}, fmt.Errorf("opening %s: %w", path, err)
	}
	return File{Aligned(fd)}, nil
}

// Fd is its file descriptor.
func (f File) Fd() int { return int(f.Aligned) }

// Close implements io.Closer.
func (f File) Close() error { return unix.Close(f.Fd()) }

// WriteAt writes whole blocks. They are on the device when it returns.
func (f File) WriteAt(b []byte, offset int64) (int, error) {
	buffer := Buffer(len(b))
	copy(buffer, b)
	n, err := unix.Pwrite(f.Fd(), buffer, offset)
	switch {
	case err != nil:
		return n, err
	case n != len(b):
		return n, fmt.Errorf("only %d of %d bytes were written", n, len(b))
	}
	return n, unix.Fdatasync(f.Fd())
}

// Discard lets the device drop a range, and is errors.ErrUnsupported unless the kernel
// knows that it reads as zeros then: that is what punching a hole means on a block device.
func (f File) Discard(offset, length int64) error {
	err := unix.Fallocate(f.Fd(), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return errors.ErrUnsupported
	}
	if err != nil {
		return err
	}
	return unix.Fdatasync(f.Fd())
}

// Overwrite lets zeros be written, by the device itself if it can. What is stored below
// a thin device stays allocated. The page cache is not filled by it.
func (f File) Overwrite(offset, length int64) error {
	span := [2]uint64{uint64(offset), uint64(length)} //nolint:gosec // within the device
	if err := f.Ioctl(unix.BLKZEROOUT, unsafe.Pointer(&span)); err != nil {
		return err
	}
	return unix.Fdatasync(f.Fd())
}

// Ioctl makes a request about the device.
func (f File) Ioctl(request uint, arg unsafe.Pointer) error {
	for {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(f.Fd()), uintptr(request), uintptr(arg)); errno != unix.EINTR {
			if errno != 0 {
				return errno
			}
			return nil
		}
	}
}
