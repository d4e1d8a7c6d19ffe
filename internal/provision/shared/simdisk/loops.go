package simdisk

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev"
)

// bytesFile has the bytes of a disk with devices.
const bytesFile = "disk"

// loops are the loop devices of the file of one disk, one for each node that has the disk attached.
// The kernel itself says which file a device is made of, and bears the mark of the node.
type loops struct{ file string }

// loop is the path of a loop device; empty is none.
type loop string

// mark is the name of a node at the kernel, which keeps 63 bytes.
func mark(node string) (out [unix.LO_NAME_SIZE]byte) {
	sum := sha256.Sum256([]byte(node))
	copy(out[:], "berth-simdisk-"+hex.EncodeToString(sum[:16]))
	return out
}

// find returns a node's device, empty if it has none. The caller has the target's lock.
func (l *loops) find(node string) (loop, error) {
	var of unix.Stat_t
	if err := unix.Stat(l.file, &of); err != nil {
		return "", fmt.Errorf("%w: looking at the file of the simulated disk, %s: %w", provision.ErrUnavailable, l.file, err)
	}
	backed, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return "", err
	}
	for _, path := range backed {
		// Other devices are not opened: their owners may be about to detach them.
		if name, err := blockdev.ReadLine(path); err != nil || filepath.Base(name) != bytesFile {
			continue
		}
		at := loop(filepath.Join("/dev", filepath.Base(filepath.Dir(filepath.Dir(path)))))
		is := false
		err := at.open(unix.O_RDONLY, func(fd int) error {
			info, err := unix.IoctlLoopGetStatus64(fd)
			is = err == nil && info.Device == of.Dev && info.Inode == of.Ino && info.File_name == mark(node)
			return err
		})
		switch {
		case is:
			return at, nil
		case err != nil && !errors.Is(err, unix.ENXIO) && !errors.Is(err, unix.ENOENT): // made of nothing meanwhile
			return "", fmt.Errorf("%w: asking %s what it is made of: %w", provision.ErrUnavailable, at, err)
		}
	}
	return "", nil
}

// add makes the device of a node, which has no pages of an earlier one. The caller has the target's lock.
func (l *loops) add(node string) error {
	if err := l.remove(node); err != nil {
		return err
	}
	file, err := os.OpenFile(l.file, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w: opening the file of the simulated disk: %w", provision.ErrUnavailable, err)
	}
	defer file.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("%w: loop devices are needed for a simulated disk: %w", provision.ErrUnavailable, err)
	}
	defer control.Close()
	c := unix.LoopConfig{Fd: uint32(file.Fd()), Info: unix.LoopInfo64{File_name: mark(node)}} //nolint:gosec // small
	for {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return fmt.Errorf("%w: finding a free loop device: %w", provision.ErrUnavailable, err)
		}
		at := loop(fmt.Sprintf("/dev/loop%d", number))
		err = at.open(unix.O_RDWR, func(fd int) error { return unix.IoctlLoopConfigure(fd, &c) })
		if errors.Is(err, unix.EBUSY) { // another process was faster
			continue
		}
		if err != nil {
			return fmt.Errorf("%w: making %s of %s: %w", provision.ErrUnavailable, at, l.file, err)
		}
		return nil
	}
}

// remove removes a node's device. The kernel keeps one that a process still has open, and lets it go
// with that process.
func (l *loops) remove(node string) error {
	at, err := l.find(node)
	if err != nil || at == "" {
		return err
	}
	if err := at.open(unix.O_RDWR, func(fd int) error {
		return errors.Join(unix.Fsync(fd), ioctl(fd, unix.LOOP_CLR_FD))
	}); err != nil && !errors.Is(err, unix.ENXIO) {
		return fmt.Errorf("%w: removing %s: %w", provision.ErrUnavailable, at, err)
	}
	if left, err := l.find(node); err != nil || left == "" {
		return err
	}
	return fmt.Errorf("%w: %s is open in another process", provision.ErrInUse, at)
}

// idle returns ErrInUse if something has a node's device open.
func (l *loops) idle(node string) error {
	at, err := l.find(node)
	if err != nil || at == "" {
		return err
	}
	err = at.open(unix.O_RDONLY|unix.O_EXCL, func(int) error { return nil })
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("%w: %s is mounted", provision.ErrInUse, at)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	}
	number, err := blockdev.Number(string(at))
	if err != nil {
		return fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	}
	// A process that ends meanwhile has nothing open.
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		var st unix.Stat_t
		if unix.Stat(file, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFBLK && st.Rdev == number {
			return fmt.Errorf("%w: %s is open in process %s", provision.ErrInUse, at, filepath.Base(filepath.Dir(filepath.Dir(file))))
		}
	}
	return nil
}

// settle writes the pages of a node's device, and forgets them.
func (l *loops) settle(node string) error {
	at, err := l.find(node)
	if err != nil || at == "" {
		return err
	}
	if err := at.open(unix.O_RDWR, func(fd int) error {
		return errors.Join(unix.Fsync(fd), ioctl(fd, unix.BLKFLSBUF))
	}); err != nil {
		return fmt.Errorf("%w: writing the pages of %s: %w", provision.ErrUnavailable, at, err)
	}
	return nil
}

// content is the device as mounts and the guard know it.
func (at loop) content() (provision.Content, error) {
	number, err := blockdev.Number(string(at))
	if err != nil {
		return provision.Content{}, fmt.Errorf("%w: %w", provision.ErrUnavailable, err)
	}
	identity, err := blockdev.IdentityOf(number)
	if err == nil && identity == "" {
		err = errors.New("the kernel says nothing of it")
	}
	if err != nil {
		return provision.Content{}, fmt.Errorf("%w: asking which device %s is: %w", provision.ErrUnavailable, at, err)
	}
	return provision.Content{Source: string(at), Identity: identity}, nil
}

func (at loop) open(mode int, do func(fd int) error) error {
	fd, err := unix.Open(string(at), mode|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening %s: %w", at, err)
	}
	defer unix.Close(fd)
	return do(fd)
}

func ioctl(fd int, request uint) error {
	_, err := unix.IoctlRetInt(fd, request)
	return err
}
