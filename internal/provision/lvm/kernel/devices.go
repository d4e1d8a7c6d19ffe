package kernel

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/lvm"
)

// Devices are the block devices of this machine.
type Devices struct{}

var _ lvm.Devices = Devices{}

// Leads implements lvm.Devices.
func (Devices) Leads(path string, is provision.Identity) error { return blockdev.Leads(path, is) }

// Same says whether two paths lead to one block device.
func (Devices) Same(a, b string) bool { return blockdev.Same(a, b) }

// Watch calls written for each block device that a writer has closed, that appeared or that
// disappeared.
func (Devices) Watch(ctx context.Context, ready func(), written func(device string)) error {
	return blockdev.Watch(ctx, ready, written)
}

// Sequence returns the sequence number in the LVM metadata of a physical volume.
func (Devices) Sequence(device string) (uint64, error) {
	// LVM's writes bypass the page cache, so the read must bypass it, too.
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
