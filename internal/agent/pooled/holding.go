package pooled

import (
	"fmt"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
)

// Holding is how the kernel names a volume in a pool to the guard. The guard has to know the volume before it is
// mounted, and the numbers of a tree show only then: a tree is ErrUnsupported.
func Holding(c provision.Content) (guard.Holding, error) {
	if c.IsTree() {
		return guard.Holding{}, fmt.Errorf("%w: volumes with copies must be block devices: the guard cannot watch over a filesystem of %s before it is mounted",
			provision.ErrUnsupported, c.Tree)
	}
	n, err := numberOf(c)
	if err != nil {
		return guard.Holding{}, err
	}
	return guard.Holding{Device: fmt.Sprintf("%d:%d", unix.Major(n), unix.Minor(n)), Block: true}, nil
}

// numberOf returns the number of the device of an identity. Where only the device itself proves that, it is opened:
// while it is open, no other device gets its number.
func numberOf(c provision.Content) (uint64, error) {
	if !c.Identity.NeedsOpening() {
		return blockdev.Find(c.Source, c.Identity)
	}
	fd, err := unix.Open(c.Source, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, fmt.Errorf("%w: opening %s: %w", provision.ErrUnavailable, c.Source, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := blockdev.Prove(fd, c.Source, c.Identity); err != nil {
		return 0, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return 0, fmt.Errorf("looking at %s: %w", c.Source, err)
	}
	return st.Rdev, nil
}
