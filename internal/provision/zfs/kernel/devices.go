package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/provision/blockdev"
	"berth.dev/berth/internal/provision/zfs"
)

const (
	linkDir  = "/dev/zvol"
	blockDir = "/sys/block"
	// patience is how long a device may take to appear, or to follow when its dataset
	// is renamed, and pause how long to wait before looking again.
	patience = 20 * time.Second
	pause    = 20 * time.Millisecond
	// youth is how old a device may be to be asked at first, for a brief time: mostly the
	// device that is looked for was just made, and a node may have thousands.
	youth = 10 * time.Second
	brief = 200 * time.Millisecond
)

// Devices are the zvols of this machine. The zero value is ready to use.
//
// A link is believed only if the device itself tells that name, each time: after a zpool was
// exported and imported, its zvols may bear each other's numbers. udev makes the links to zvols,
// where it runs. Devices makes them, too: a container has no udev of its own, and the machine's
// udev comes later.
type Devices struct {
	// asking lets one goroutine at a time look for the device of a zvol: opening it may hang.
	asking keyed.Locks[string]
	// linking lets one goroutine at a time replace a link: all use the same temporary name.
	linking sync.Mutex
	// writing lets one goroutine at a time write out a volume.
	writing keyed.Locks[string]
}

var _ zfs.Devices = (*Devices)(nil)

// Locate implements zfs.Devices.
func (d *Devices) Locate(ctx context.Context, dataset string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	unlock, err := d.asking.Lock(ctx, dataset)
	if err != nil {
		cancel()
		return fmt.Errorf("looking for zvol %s, whose device does not answer: %w", dataset, err)
	}
	found := make(chan error, 1)
	go func() {
		defer unlock()
		defer cancel()
		found <- d.await(ctx, dataset)
	}()
	select {
	case err := <-found:
		return err
	case <-ctx.Done():
		select {
		case err := <-found:
			return err
		default:
			return fmt.Errorf("looking for zvol %s: %w", dataset, context.Cause(ctx))
		}
	}
}

func (d *Devices) await(ctx context.Context, dataset string) error {
	look := time.NewTicker(pause)
	defer look.Stop()
	for begun := time.Now(); ; {
		since := begun.Add(-youth)
		if time.Since(begun) > brief {
			since = time.Time{}
		}
		device, err := d.find(dataset, since)
		if err == nil {
			return d.connect(dataset, device)
		}
		select {
		case <-ctx.Done():
			return err
		case <-look.C:
		}
	}
}

// Forget implements zfs.Devices.
func (*Devices) Forget(dataset string) {
	if info, err := os.Lstat(link(dataset)); err == nil && info.Mode()&os.ModeSymlink != 0 {
		_ = os.Remove(link(dataset)) // udev may be faster
	}
}

// Settle implements zfs.Devices. A program that looks at a device for a moment, as udev does,
// locks it meanwhile, as systemd's rules of locking block devices demand. A program that uses
// the device does not lock it.
func (d *Devices) Settle(ctx context.Context, dataset string) {
	device, err := d.find(dataset, time.Time{})
	if err != nil {
		return
	}
	fd, err := unix.Open(device, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look := time.NewTicker(pause)
	defer look.Stop()
	for errors.Is(unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB), unix.EWOULDBLOCK) {
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

// Claimed implements zfs.Devices.
func (d *Devices) Claimed(dataset string) bool {
	device, err := d.find(dataset, time.Time{})
	if err != nil {
		return false // no process can use it
	}
	fd, err := unix.Open(device, unix.O_RDONLY|unix.O_EXCL|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == nil {
		unix.Close(fd)
	}
	return errors.Is(err, unix.EBUSY)
}

func link(dataset string) string { return filepath.Join(linkDir, dataset) }

// connect makes the link to a zvol's device.
func (d *Devices) connect(dataset, device string) error {
	if blockdev.Same(link(dataset), device) {
		return nil
	}
	if err := d.relink(link(dataset), device); err != nil {
		return fmt.Errorf("linking zvol %s: %w", dataset, err)
	}
	return nil
}

// relink replaces the link at a path, if there is one, in one step.
func (d *Devices) relink(path, target string) error {
	d.linking.Lock()
	defer d.linking.Unlock()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	relative, err := filepath.Rel(filepath.Dir(path), target)
	if err != nil {
		return err
	}
	part := path + ".berth"
	_ = os.Remove(part)
	if err := os.Symlink(relative, part); err != nil {
		return err
	}
	return os.Rename(part, path)
}

func is(device, dataset string) bool {
	name, err := nameOf(device)
	return err == nil && name == dataset
}

// nameOf asks a device for its dataset.
func nameOf(device string) (string, error) {
	fd, err := openNode(device)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	name, err := blockdev.Zvol(fd)
	if err != nil {
		return "", fmt.Errorf("asking %s for its dataset: %w", device, err)
	}
	return name, nil
}

func openNode(path string) (fd int, err error) {
	fd, err = unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return fd, fmt.Errorf("opening %s: %w", path, err)
	}
	return fd, nil
}
