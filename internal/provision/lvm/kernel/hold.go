package kernel

import (
	"errors"
	"io"
	"unsafe"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/lvm"
)

// file is a logical volume that is open, past the page cache.
type file struct{ blockdev.File }

var _ lvm.Holder = file{}

// Hold opens a device for writing, alone. Opening exclusively is what mounting does
// too, and the kernel grants it to one.
func (Devices) Hold(path string, is provision.Identity) (lvm.Holder, error) {
	return proved(path, unix.O_RDWR|unix.O_EXCL, is)
}

// Look opens a device for reading.
func (Devices) Look(path string, is provision.Identity) (lvm.Looker, error) {
	return proved(path, unix.O_RDONLY, is)
}

func proved(path string, flags int, is provision.Identity) (lvm.Holder, error) {
	f, err := blockdev.Open(path, flags)
	if errors.Is(err, unix.EBUSY) {
		return nil, lvm.ErrBusy
	}
	if err != nil {
		return nil, err
	}
	if err := blockdev.Prove(f.Fd(), path, is); err != nil {
		f.Close()
		return nil, err
	}
	return file{f}, nil
}

// Size implements lvm.Looker.
func (f file) Size() (size int64, err error) {
	err = f.Ioctl(unix.BLKGETSIZE64, unsafe.Pointer(&size))
	return size, err
}

// alignment that every disk is content with.
const alignment = 4096

// ReadAt implements lvm.Looker, and reads whole blocks straight to where they are wanted.
func (f file) ReadAt(b []byte, offset int64) (int, error) {
	if len(b) == 0 || (uintptr(unsafe.Pointer(&b[0]))|uintptr(len(b))|uintptr(offset))%alignment != 0 { //nolint:gosec // alignment only
		return f.File.ReadAt(b, offset)
	}
	return f.whole(b, offset, unix.Pread, io.ErrUnexpectedEOF)
}

// WriteAt implements lvm.Holder, for data that begins and ends where blocks do.
func (f file) WriteAt(b []byte, offset int64) (int, error) {
	return f.whole(b, offset, unix.Pwrite, io.ErrShortWrite)
}

// whole reads or writes all that is asked for.
func (f file) whole(b []byte, offset int64, part func(fd int, b []byte, offset int64) (int, error), short error) (done int, err error) {
	return behind(func() (done int, err error) {
		for done < len(b) {
			n, err := part(f.Fd(), b[done:], offset+int64(done))
			if err == nil && n == 0 {
				err = short
			}
			if err != nil {
				return done, err
			}
			done += n
		}
		return done, nil
	})
}

// Zero implements lvm.Holder.
func (f file) Zero(offset, length int64) error {
	span := [2]uint64{uint64(offset), uint64(length)} //nolint:gosec // within the device
	return f.Ioctl(unix.BLKZEROOUT, unsafe.Pointer(&span))
}

// Sync implements lvm.Holder.
func (f file) Sync() error { return unix.Fsync(f.Fd()) }
