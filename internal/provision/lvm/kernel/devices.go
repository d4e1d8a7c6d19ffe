package kernel

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/lvm"
)

// Devices are the block devices of this machine.
type Devices struct{}

var _ lvm.Devices = Devices{}

// Exists says whether a block device is there.
func (Devices) Exists(path string) bool { return blockdev.Exists(path) }

// Same says whether two paths lead to one block device.
func (Devices) Same(a, b string) bool { return blockdev.Same(a, b) }

// Watch tells of block devices that a writer has closed, that came or that went.
func (Devices) Watch(ctx context.Context, ready func(), written func(device string)) error {
	return blockdev.Watch(ctx, ready, written)
}

// Mapping returns the device-mapper name and uuid of a device.
func (Devices) Mapping(path string) (name, uuid string, err error) {
	n, err := blockdev.Number(path)
	if err != nil {
		return "", "", err
	}
	return mapping(n)
}

// mapping of the device of a number.
func mapping(n uint64) (name, uuid string, err error) {
	dir := fmt.Sprintf("/sys/dev/block/%d:%d/dm/", unix.Major(n), unix.Minor(n))
	if name, err = blockdev.ReadLine(dir + "name"); err != nil {
		return "", "", err
	}
	uuid, err = blockdev.ReadLine(dir + "uuid")
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
	n, err := readSequence(blockdev.Aligned(fd))
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", device, err)
	}
	return n, nil
}
