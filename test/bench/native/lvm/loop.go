package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const loopMajor = 7

// attach puts a file on a free loop device and makes the device's node.
func attach(node, image string) (number uint32, err error) {
	f, err := os.OpenFile(image, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer control.Close()
	for {
		free, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return 0, fmt.Errorf("finding a free loop device: %w", err)
		}
		number = uint32(free) //nolint:gosec // small
		err = bind(node, number, f)
		if err == nil {
			return number, nil
		}
		if err := unlink(node); err != nil {
			return 0, err
		}
		if !errors.Is(err, unix.EBUSY) { // another process was faster
			return 0, err
		}
	}
}

func bind(node string, number uint32, image *os.File) error {
	if err := unix.Mknod(node, unix.S_IFBLK|0o660, int(unix.Mkdev(loopMajor, number))); err != nil { //nolint:gosec // small
		return fmt.Errorf("making %s: %w", node, err)
	}
	return onDevice(node, unix.O_RDWR, func(fd int) error {
		return unix.IoctlLoopConfigure(fd, &unix.LoopConfig{Fd: uint32(image.Fd())}) //nolint:gosec // small
	})
}

func detach(node string) error {
	return onDevice(node, unix.O_RDWR, func(fd int) error {
		_, err := unix.IoctlRetInt(fd, unix.LOOP_CLR_FD)
		return err
	})
}

// grow makes the volume's device as large as its file.
func (v volume) grow() error {
	if _, bound := boundLoop(v.node(), v.image()); !bound {
		return nil
	}
	return onDevice(v.node(), unix.O_RDWR, func(fd int) error {
		_, err := unix.IoctlRetInt(fd, unix.LOOP_SET_CAPACITY)
		return err
	})
}

// boundLoop returns the loop device of a device node if it is over the image. Since
// the machine was started, another image may have got its number.
func boundLoop(node, image string) (number uint32, bound bool) {
	var at, of unix.Stat_t
	if unix.Stat(node, &at) != nil || unix.Stat(image, &of) != nil || at.Mode&unix.S_IFMT != unix.S_IFBLK {
		return 0, false
	}
	err := onDevice(node, unix.O_RDONLY, func(fd int) error {
		info, err := unix.IoctlLoopGetStatus64(fd)
		bound = err == nil && info.Device == of.Dev && info.Inode == of.Ino
		return err
	})
	return unix.Minor(at.Rdev), err == nil && bound
}

func onDevice(node string, mode int, do func(fd int) error) error {
	fd, err := unix.Open(node, mode|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", node, err)
	}
	defer unix.Close(fd)
	return do(fd)
}
