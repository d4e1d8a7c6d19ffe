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

// file is an open logical volume. Its reads and writes bypass the page cache.
type file struct{ blockdev.File }

var _ lvm.Holder = file{}

// Hold opens a device exclusively for writing. A mount opens its device exclusively, too, and
// the kernel allows only one such opener.
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

// alignment, in bytes, is enough for every disk.
const alignment = 4096

// ReadAt implements lvm.Looker. It reads whole, aligned blocks directly into b.
func (f file) ReadAt(b []byte, offset int64) (int, error) {
	if len(b) == 0 || (uintptr(unsafe.Pointer(&b[0]))|uintptr(len(b))|uintptr(offset))%alignment != 0 { //nolint:gosec // alignment only
		return f.File.ReadAt(b, offset)
	}
	return f.whole(b, offset, unix.Pread, io.ErrUnexpectedEOF)
}

// WriteAt implements lvm.Holder. The data must begin and end at block boundaries.
func (f file) WriteAt(b []byte, offset int64) (int, error) {
	return f.whole(b, offset, unix.Pwrite, io.ErrShortWrite)
}

// whole reads or writes all of b, or returns an error.
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
