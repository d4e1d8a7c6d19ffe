package kernel

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/blockdev"
)

// WriteOut implements zfs.Devices. Whoever waits may give up; the kernel does not, so
// nobody begins anew while it is at it. Joining in would not do: what was written since it
// began may be left out.
func (d *Devices) WriteOut(ctx context.Context, dataset string, files bool) error {
	unlock, err := d.writing.Lock(ctx, dataset)
	if err != nil {
		return fmt.Errorf("it is still being written: %w", err)
	}
	done := make(chan error, 1)
	go func() {
		defer unlock()
		if files {
			done <- writeOutFiles(dataset)
		} else {
			done <- d.writeOut(dataset)
		}
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *Devices) writeOut(dataset string) error {
	device, err := d.find(dataset, time.Time{})
	if err != nil {
		return nil //nolint:nilerr // nobody can have written to it
	}
	number, err := blockdev.Number(device)
	if err != nil {
		return err
	}
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return !isOn(m, number), false })
	if err != nil {
		return fmt.Errorf("reading the mount table: %w", err)
	}
	for _, m := range mounts {
		if there, err := syncMount(m.Mountpoint, number); there || err != nil {
			return err
		}
	}
	return through(device, unix.O_RDONLY, unix.Fsync) // what was written to it as a device
}

func isOn(m *mountinfo.Info, device uint64) bool {
	return unix.Mkdev(uint32(m.Major), uint32(m.Minor)) == device //nolint:gosec // as the kernel prints them
}

// syncMount writes out the filesystem that is mounted at a path, if it is on the device:
// another may be mounted over it.
func syncMount(path string, device uint64) (there bool, err error) {
	err = through(path, unix.O_RDONLY|unix.O_DIRECTORY, func(fd int) error {
		var st unix.Stat_t
		if err := unix.Fstat(fd, &st); err != nil || st.Dev != device {
			return err
		}
		there = true
		return unix.Syncfs(fd)
	})
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return false, nil // unmounted meanwhile
	}
	return there, err
}

// through opens a path for a moment.
func through(path string, flags int, f func(fd int) error) error {
	fd, err := unix.Open(path, flags|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", path, err)
	}
	defer unix.Close(fd)
	if err := f(fd); err != nil {
		return fmt.Errorf("writing out %s: %w", path, err)
	}
	return nil
}
