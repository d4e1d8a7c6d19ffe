package kernel

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/iscsi"
	"berth.dev/berth/internal/provision/iscsi/scsi"
)

// Open implements iscsi.Kernel. The device is opened for reading, for which the kernel sends every
// command of a privileged process too: udev looks anew at a device that a writer closes.
func (k Kernel) Open(u iscsi.Unit, exclusively bool) (iscsi.Device, error) {
	flags := unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC
	if exclusively {
		flags |= unix.O_EXCL
	}
	fd, err := unix.Open(k.root+u.Path, flags, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, iscsi.ErrBusy
	}
	if err != nil {
		return nil, err
	}
	d := device(fd)
	if err := d.is(u.Number); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// device is the descriptor of an open block device.
type device int

func (d device) is(number string) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(d), &st); err != nil {
		return err
	}
	got := fmt.Sprintf("%d:%d", unix.Major(st.Rdev), unix.Minor(st.Rdev))
	if st.Mode&unix.S_IFMT != unix.S_IFBLK || got != number {
		return fmt.Errorf("the node leads to another device: %s, not %s", got, number)
	}
	return nil
}

// Sync implements iscsi.Device.
func (d device) Sync() error { return unix.Fsync(int(d)) }

// Drop implements iscsi.Device.
func (d device) Drop() error { return unix.IoctlSetInt(int(d), unix.BLKFLSBUF, 0) }

// Close implements iscsi.Device.
func (d device) Close() error { return unix.Close(int(d)) }

// The request SG_IO and its argument (scsi/sg.h, sg_io_hdr_t).
const (
	sgIO        = 0x2285
	sgInterface = 'S'

	sgNone = -1
	sgOut  = -2
	sgIn   = -3

	senseLimit = 96
)

type sgHeader struct {
	kind        int32
	direction   int32
	cdbLength   uint8
	senseLimit  uint8
	pieces      uint16
	length      uint32
	data        unsafe.Pointer
	cdb         unsafe.Pointer
	sense       unsafe.Pointer
	timeout     uint32 // milliseconds
	flags       uint32
	id          int32
	user        unsafe.Pointer
	status      uint8
	masked      uint8
	message     uint8
	senseLength uint8
	host        uint16
	driver      uint16
	missing     int32
	duration    uint32
	info        uint32
}

// Execute implements iscsi.Device.
func (d device) Execute(c scsi.Command, limit time.Duration) (scsi.Result, error) {
	var pin runtime.Pinner
	defer pin.Unpin()
	sense := make([]byte, senseLimit)
	h := sgHeader{
		kind: sgInterface, direction: sgNone, timeout: uint32(limit.Milliseconds()), //nolint:gosec // seconds
		cdbLength: uint8(len(c.CDB)), cdb: pinned(&pin, c.CDB), //nolint:gosec // at most 16 bytes
		senseLimit: senseLimit, sense: pinned(&pin, sense),
	}
	data := make([]byte, c.In)
	switch {
	case len(c.Out) > 0:
		h.direction, h.length, h.data = sgOut, uint32(len(c.Out)), pinned(&pin, c.Out) //nolint:gosec // a few bytes
	case c.In > 0:
		h.direction, h.length, h.data = sgIn, uint32(len(data)), pinned(&pin, data) //nolint:gosec // a few kilobytes
	}
	pin.Pin(&h)
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d), sgIO, uintptr(unsafe.Pointer(&h))) //nolint:gosec // a C structure
		if errno == 0 {
			break
		}
		if errno != unix.EINTR {
			return scsi.Result{}, errno
		}
	}
	missing := min(max(int(h.missing), 0), len(data))
	return scsi.Result{
		Status: h.status, Host: h.host, Sense: sense[:min(int(h.senseLength), len(sense))], Data: data[:len(data)-missing],
	}, nil
}

func pinned(pin *runtime.Pinner, b []byte) unsafe.Pointer {
	pin.Pin(&b[0])
	return unsafe.Pointer(&b[0])
}
