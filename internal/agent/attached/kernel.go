package attached

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

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
		flags = holding
	}
	f, err := open(c, flags)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// holding are the flags of a device that is written by its only user.
const holding = unix.O_RDWR | unix.O_EXCL

// Hold opens a device to write it as its only user.
func Hold(c provision.Content) (blockdev.File, error) { return open(c, holding) }

// open opens a device, and proves that it is the one.
func open(c provision.Content, flags int) (blockdev.File, error) {
	f, err := blockdev.Open(c.Source, flags)
	switch {
	case errors.Is(err, unix.EBUSY):
		return f, fmt.Errorf("%w: %s is in use", provision.ErrInUse, c.Source)
	case err != nil:
		return f, fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	}
	if err := blockdev.Prove(f.Fd(), c.Source, c.Identity); err != nil {
		f.Close()
		return f, err
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

// rescanTime is how long a disk may take to say its size. While its path is away it takes longer.
const rescanTime = 10 * time.Second

// Rescan implements Machine. Devices that are no SCSI devices tell the kernel themselves. A device that does not
// answer in time is left to answer later.
func (Kernel) Rescan(ctx context.Context, c provision.Content) error {
	number, err := numberOf(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, rescanTime)
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- os.WriteFile(filepath.Join("/sys/dev/block", number, "device/rescan"), []byte("1"), 0)
	}()
	select {
	case err := <-done:
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: asking %s for its size: %w", provision.ErrUnavailable, c.Source, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %s does not say its size: %w", provision.ErrUnavailable, c.Source, ctx.Err())
	}
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
