package kernel

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/device"
)

// file is a disk that is open, past the page cache.
type file struct {
	blockdev.Aligned
	fd int
}

// Read implements device.Disks.
func (k Disks) Read(name string) (device.Reader, error) {
	f, err := k.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Hold implements device.Disks. Opening exclusively is what mounting does too, and the
// kernel grants it to one. A lock on the disk asks udev not to look at it meanwhile, which
// would make it forget the partitions and find them again.
func (k Disks) Hold(name string) (device.Holder, error) {
	f, err := k.open(name, unix.O_RDWR|unix.O_EXCL)
	if err != nil {
		return nil, err
	}
	if err := f.lock(); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (k Disks) open(name string, flags int) (*file, error) {
	path := k.root + filepath.Join(devDir, name)
	fd, err := unix.Open(path, flags|unix.O_DIRECT|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, device.ErrBusy
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	return &file{blockdev.Aligned(fd), fd}, nil
}

const (
	lockPatience = 5 * time.Second
	lockPause    = 20 * time.Millisecond
)

// lock waits a little for udev, which locks a disk while it looks at it.
func (f *file) lock() error {
	deadline := time.NewTimer(lockPatience)
	defer deadline.Stop()
	pause := time.NewTicker(lockPause)
	defer pause.Stop()
	for {
		err := unix.Flock(f.fd, unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		select {
		case <-deadline.C:
			return device.ErrBusy
		case <-pause.C:
		}
	}
}

// Close implements io.Closer.
func (f *file) Close() error { return unix.Close(f.fd) }

// WriteAt implements io.WriterAt.
func (f *file) WriteAt(b []byte, offset int64) (int, error) {
	buffer := blockdev.Buffer(len(b))
	copy(buffer, b)
	n, err := unix.Pwrite(f.fd, buffer, offset)
	switch {
	case err != nil:
		return n, err
	case n != len(b):
		return n, fmt.Errorf("only %d of %d bytes were written", n, len(b))
	}
	return n, unix.Fdatasync(f.fd)
}

// Zero implements device.Holder.
func (f *file) Zero(offset, length int64) error {
	err := f.discard(offset, length)
	if errors.Is(err, unix.EOPNOTSUPP) {
		err = f.overwrite(offset, length)
	}
	if err != nil {
		return err
	}
	return unix.Fdatasync(f.fd)
}

// discard lets the disk discard a range, and fails unless the kernel knows that it reads
// as zeros then: that is what punching a hole means on a block device.
func (f *file) discard(offset, length int64) error {
	return unix.Fallocate(f.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length)
}

// overwrite lets zeros be written, by the disk itself if it can.
func (f *file) overwrite(offset, length int64) error {
	span := [2]uint64{uint64(offset), uint64(length)} //nolint:gosec // within the disk
	return f.ioctl(unix.BLKZEROOUT, unsafe.Pointer(&span))
}

// AddPartition implements device.Holder.
func (f *file) AddPartition(p device.Partition) error {
	return f.partition(unix.BLKPG_ADD_PARTITION, unix.BlkpgPartition{Start: p.Start, Length: p.Length, Pno: int32(p.Number)}) //nolint:gosec // a disk has few
}

// RemovePartition implements device.Holder.
func (f *file) RemovePartition(number int) error {
	err := f.partition(unix.BLKPG_DEL_PARTITION, unix.BlkpgPartition{Pno: int32(number)}) //nolint:gosec // as above
	if errors.Is(err, unix.ENXIO) {
		return nil
	}
	return err
}

func (f *file) partition(op int32, p unix.BlkpgPartition) error {
	var pin runtime.Pinner
	defer pin.Unpin()
	pin.Pin(&p)
	arg := unix.BlkpgIoctlArg{Op: op, Datalen: int32(unsafe.Sizeof(p)), Data: (*byte)(unsafe.Pointer(&p))} //nolint:gosec // a C structure
	err := f.ioctl(unix.BLKPG, unsafe.Pointer(&arg))
	if errors.Is(err, unix.EBUSY) {
		return device.ErrBusy
	}
	return err
}

func (f *file) ioctl(request uint, arg unsafe.Pointer) error {
	for {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(f.fd), uintptr(request), uintptr(arg)); errno != unix.EINTR {
			if errno != 0 {
				return errno
			}
			return nil
		}
	}
}
