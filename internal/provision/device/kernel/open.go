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

// file is a disk that is open. Its reads and writes go past the page cache.
type file struct{ blockdev.File }

// Read implements device.Disks.
func (k Disks) Read(name string) (device.Reader, error) {
	f, err := k.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Hold implements device.Disks. It opens the disk exclusively, as mounting does, which the
// kernel grants to one opener. A lock on the disk asks udev not to look at it meanwhile: udev
// would make the kernel forget the partitions and find them again.
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
	f, err := blockdev.Open(k.root+filepath.Join(devDir, name), flags)
	if errors.Is(err, unix.EBUSY) {
		return nil, device.ErrBusy
	}
	if err != nil {
		return nil, err
	}
	if err := k.proved(f, name); err != nil {
		f.Close()
		return nil, err
	}
	return &file{f}, nil
}

// proved returns nil if the open file is the device to which the kernel gives a name. The node
// of that name may lead to another device.
func (k Disks) proved(f blockdev.File, name string) error {
	var st unix.Stat_t
	if err := unix.Fstat(f.Fd(), &st); err != nil {
		return fmt.Errorf("looking at what is open: %w", err)
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	if is := attributes(filepath.Join(k.root, "/sys/class/block", name)).text("dev"); is != number {
		return fmt.Errorf("the node of %s leads to device %s, and it is %q", name, number, is)
	}
	return nil
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
		err := unix.Flock(f.Fd(), unix.LOCK_EX|unix.LOCK_NB)
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
	err := f.Ioctl(unix.BLKPG, unsafe.Pointer(&arg))
	if errors.Is(err, unix.EBUSY) {
		return device.ErrBusy
	}
	return err
}
