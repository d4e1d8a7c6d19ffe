package blockdev

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	devDir   = "/dev"
	blockDir = "/sys/class/block"
)

// Watch calls ready once nothing escapes it any more, and then written with the
// path of each block device that a writer has closed, that appeared or that went,
// until ctx ends. LVM closes the physical volumes after it wrote to them, and a program
// that changes a partition table closes the disk, so this is how changes by others are
// noticed; udev does the same. It asks for nothing periodically and costs nothing
// while nothing happens. Neither function may block.
func Watch(ctx context.Context, ready func(), written func(device string)) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("starting to watch devices: %w", err)
	}
	events := os.NewFile(uintptr(fd), "inotify")
	defer events.Close()
	unhook := context.AfterFunc(ctx, func() { events.Close() }) // ends the read below
	defer unhook()

	w := watch{fd: fd, paths: map[int32]string{}, written: written}
	// The directory itself tells only of nodes that come and go: writers of /dev/null
	// close it many times a second.
	if w.dir, err = unix.InotifyAddWatch(fd, devDir, unix.IN_CREATE|unix.IN_DELETE|unix.IN_ONLYDIR); err != nil {
		return fmt.Errorf("watching %s: %w", devDir, err)
	}
	entries, err := os.ReadDir(blockDir)
	if err != nil {
		return fmt.Errorf("listing block devices: %w", err)
	}
	for _, e := range entries {
		w.add(filepath.Join(devDir, e.Name()))
	}
	ready()
	buffer := make([]byte, 64<<10)
	for {
		n, err := events.Read(buffer)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watching devices: %w", err)
		}
		if err := w.handle(buffer[:n]); err != nil {
			return err
		}
	}
}

type watch struct {
	fd      int
	dir     int
	paths   map[int32]string
	written func(string)
}

// add watches a device unless it is a logical volume, whose writers are the users
// of the data, or has no node here.
func (w *watch) add(path string) bool {
	if _, err := Number(path); err != nil {
		return false
	}
	if uuid, err := ReadLine(filepath.Join(blockDir, filepath.Base(path), "dm/uuid")); err == nil && strings.HasPrefix(uuid, "LVM-") {
		return false
	}
	wd, err := unix.InotifyAddWatch(w.fd, path, unix.IN_CLOSE_WRITE)
	if err != nil {
		return false
	}
	w.paths[int32(wd)] = path //nolint:gosec // the kernel numbers watches from 1
	return true
}

// handle goes through a batch of events.
func (w *watch) handle(events []byte) error {
	for len(events) >= unix.SizeofInotifyEvent {
		wd := int32(binary.NativeEndian.Uint32(events)) //nolint:gosec // as the kernel wrote it
		mask := binary.NativeEndian.Uint32(events[4:])
		end := unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(events[12:]))
		if end > len(events) {
			return errors.New("watching devices: an event is cut short")
		}
		name, _, _ := strings.Cut(string(events[unix.SizeofInotifyEvent:end]), "\x00")
		events = events[end:]
		w.event(wd, mask, name)
	}
	return nil
}

func (w *watch) event(wd int32, mask uint32, name string) {
	switch {
	case mask&unix.IN_Q_OVERFLOW != 0:
		for _, path := range w.paths { // any of them may have been written
			w.written(path)
		}
	case mask&unix.IN_IGNORED != 0:
		delete(w.paths, wd)
	case int(wd) != w.dir:
		if path := w.paths[wd]; path != "" {
			w.written(path)
		}
	case mask&unix.IN_CREATE != 0:
		if path := filepath.Join(devDir, name); w.add(path) {
			w.written(path)
		}
	case mask&unix.IN_DELETE != 0:
		w.written(filepath.Join(devDir, name))
	}
}
