package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// activate gives the volume its loop device, its device nodes and its name in sysfs,
// unless it has them.
func (v volume) activate(uuid string) error {
	if v.isActive() {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(v.node()), 0o755); err != nil {
		return err
	}
	number, bound := boundLoop(v.node(), v.image())
	if !bound {
		if err := unlink(v.node()); err != nil {
			return err
		}
		var err error
		if number, err = attach(v.node(), v.image()); err != nil {
			return fmt.Errorf("activating %s/%s: %w", v.group, v.name, err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(v.link()), 0o755); err != nil {
		return err
	}
	if err := unlink(v.link()); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join("..", "mapper", v.mapped()), v.link()); err != nil {
		return err
	}
	return present(number, v.mapped(), uuid)
}

// deactivate undoes activate.
func (v volume) deactivate() error {
	if number, bound := boundLoop(v.node(), v.image()); bound {
		if err := detach(v.node()); err != nil {
			return fmt.Errorf("deactivating %s/%s: %w", v.group, v.name, err)
		}
		withdraw(number)
	}
	return errors.Join(unlink(v.link()), unlink(v.node()))
}

// isActive says whether the volume can be used in this mount namespace.
func (v volume) isActive() bool {
	number, bound := boundLoop(v.node(), v.image())
	return bound && isPresent(number, v.mapped())
}

// isOpen says whether the volume is mounted, or among the opened devices.
func (v volume) isOpen(opened map[uint64]bool) bool {
	fd, err := unix.Open(v.node(), unix.O_RDONLY|unix.O_EXCL|unix.O_CLOEXEC, 0)
	if err != nil {
		return errors.Is(err, unix.EBUSY)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	return unix.Fstat(fd, &st) == nil && opened[st.Rdev]
}

// openDevices returns the numbers of the block devices that processes in this process namespace
// have open.
func openDevices() map[uint64]bool {
	numbers := map[uint64]bool{}
	paths, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, path := range paths {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFBLK {
			numbers[st.Rdev] = true
		}
	}
	return numbers
}

func unlink(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
