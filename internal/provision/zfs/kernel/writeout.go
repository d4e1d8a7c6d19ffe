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

// WriteOut implements zfs.Devices. A caller may give up, but the kernel does not. So another
// caller begins anew only when the kernel is done. Sharing the result would not do: data that
// was written since the kernel began may be left out.
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
	fd, there, err := d.open(dataset)
	if err != nil || !there {
		return err // no process can have written to a device that is not there
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	mounts, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return !isOn(m, st.Rdev), false })
	if err != nil {
		return fmt.Errorf("reading the mount table: %w", err)
	}
	for _, m := range mounts {
		if there, err := syncMount(m.Mountpoint, st.Rdev); there || err != nil {
			return err
		}
	}
	if err := writePages(fd); err != nil {
		return fmt.Errorf("writing out zvol %s: %w", dataset, err)
	}
	return nil
}

// writePages gives ZFS the data that was written to a zvol as a device. From then on it is in
// every snapshot. Fsync would write it to the intent log, too. For a zvol that is opened only for
// this, ZFS would first make an intent log: one more transaction group.
func writePages(fd int) error {
	const all = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	return unix.SyncFileRange(fd, 0, 0, all)
}

// open opens the device of a zvol. It does so only once if the zvol's link leads there: opening
// takes ZFS a while.
func (d *Devices) open(dataset string) (fd int, there bool, err error) {
	if fd, err := openNode(link(dataset)); err == nil {
		if name, err := blockdev.Zvol(fd); err == nil && name == dataset {
			return fd, true, nil
		}
		unix.Close(fd)
	}
	device, err := d.find(dataset, time.Time{})
	if err != nil {
		return 0, false, nil //nolint:nilerr // it has no device
	}
	fd, err = openNode(device)
	return fd, err == nil, err
}

func isOn(m *mountinfo.Info, device uint64) bool {
	return unix.Mkdev(uint32(m.Major), uint32(m.Minor)) == device //nolint:gosec // as the kernel prints them
}

// syncMount writes out the filesystem that is mounted at a path, if it is on the device:
// another filesystem may be mounted over it.
func syncMount(path string, device uint64) (there bool, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return false, nil // unmounted meanwhile
	}
	if err != nil {
		return false, fmt.Errorf("opening %s: %w", path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return false, fmt.Errorf("looking at %s: %w", path, err)
	}
	if st.Dev != device {
		return false, nil
	}
	if err := unix.Syncfs(fd); err != nil {
		return true, fmt.Errorf("writing out %s: %w", path, err)
	}
	return true, nil
}
