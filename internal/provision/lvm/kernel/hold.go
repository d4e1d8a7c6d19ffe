package kernel

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/lvm"
)

// file is a logical volume that is open, past the page cache.
type file struct{ blockdev.File }

// Hold opens a device for writing, alone. Opening exclusively is what mounting does
// too, and the kernel grants it to one.
func (Devices) Hold(path string) (lvm.Holder, error) {
	f, err := blockdev.Open(path, unix.O_RDWR|unix.O_EXCL)
	if errors.Is(err, unix.EBUSY) {
		return nil, lvm.ErrBusy
	}
	if err != nil {
		return nil, err
	}
	return file{f}, nil
}

// Size implements lvm.Holder.
func (f file) Size() (size int64, err error) {
	err = f.Ioctl(unix.BLKGETSIZE64, unsafe.Pointer(&size))
	return size, err
}

// Mapping implements lvm.Holder. It is that of what is open, wherever its node leads
// by now.
func (f file) Mapping() (name, uuid string, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.Fd(), &st); err != nil {
		return "", "", fmt.Errorf("looking at what is open: %w", err)
	}
	return mapping(st.Rdev)
}
