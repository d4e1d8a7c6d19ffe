package attached

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
)

// Kernel is the Machine of this process.
type Kernel struct{}

var _ Machine = Kernel{}

// Open implements Machine.
func (Kernel) Open(c provision.Content, hold bool) (Device, error) {
	flags := unix.O_RDONLY
	if hold {
		flags = unix.O_RDWR | unix.O_EXCL
	}
	f, err := blockdev.Open(c.Source, flags)
	switch {
	case errors.Is(err, unix.EBUSY):
		return nil, fmt.Errorf("%w: %s is in use", provision.ErrInUse, c.Source)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	}
	if err := blockdev.Prove(f.Fd(), c.Source, c.Identity); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Size implements Machine.
func (Kernel) Size(c provision.Content) (int64, error) {
	number, err := numberOf(c)
	if err != nil {
		return 0, err
	}
	sectors, err := blockdev.ReadLine(filepath.Join("/sys/dev/block", number, "size"))
	if err != nil {
		return 0, fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	}
	n, err := strconv.ParseInt(sectors, 10, 54)
	return n * blockdev.Sector, err
}

// Mounted implements Machine.
func (Kernel) Mounted(c provision.Content) (filesystem string, err error) {
	number, err := numberOf(c)
	if err != nil {
		return "", err
	}
	lines, err := mountinfo.GetMounts(func(line *mountinfo.Info) (skip, stop bool) {
		return fmt.Sprintf("%d:%d", line.Major, line.Minor) != number, false
	})
	if err != nil {
		return "", fmt.Errorf("%w: reading mount table: %w", provision.ErrUnavailable, err)
	}
	if len(lines) == 0 {
		return "", nil
	}
	return lines[0].FSType, nil
}

// Holding is how the kernel names a disk to the guard.
func Holding(c provision.Content) (guard.Holding, error) {
	number, err := numberOf(c)
	return guard.Holding{Device: number, Block: true}, err
}

func numberOf(c provision.Content) (string, error) {
	n, err := blockdev.Find(c.Source, c.Identity)
	return fmt.Sprintf("%d:%d", unix.Major(n), unix.Minor(n)), err
}
