package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

func loopPath(number int) string { return fmt.Sprintf("/dev/loop%d", number) }

// makeDisk makes an empty disk, a sparse file.
func makeDisk(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close())
}

// attachDisks makes loop devices of the data disks.
func (m *Machine) attachDisks() error {
	m.Loops = nil
	for _, d := range m.Spec.Disks {
		number, err := attachLoop(m.diskFile(d))
		if err != nil {
			return fmt.Errorf("attaching %s: %w", d.Name, err)
		}
		m.Loops = append(m.Loops, number)
	}
	return nil
}

// attachLoop makes a loop device of a file and returns its number.
func attachLoop(path string) (int, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer control.Close()
	for {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return 0, fmt.Errorf("finding a free loop device: %w", err)
		}
		err = bindLoop(loopPath(number), file)
		if !errors.Is(err, unix.EBUSY) { // another process was faster
			return number, err
		}
	}
}

func bindLoop(path string, file *os.File) error {
	device, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer device.Close()
	return unix.IoctlLoopConfigure(int(device.Fd()), &unix.LoopConfig{Fd: uint32(file.Fd())})
}

// detachLoops detaches every loop device over a file below dir, including those that a
// program in the node made: they go with the node. It recognizes files by device
// and inode, since a file may have another path in the node.
func detachLoops(dir string) error {
	devices, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil || len(devices) == 0 {
		return err
	}
	files, err := inodes(dir)
	if err != nil {
		return err
	}
	for _, d := range devices {
		path := "/dev/" + filepath.Base(filepath.Dir(filepath.Dir(d)))
		if err := detachLoop(path, files); err != nil {
			return fmt.Errorf("detaching %s: %w", path, err)
		}
	}
	return nil
}

type inode struct{ device, number uint64 }

func inodes(dir string) (map[inode]bool, error) {
	found := map[inode]bool{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return ignoreMissing(err)
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return ignoreMissing(err)
		}
		found[inode{st.Dev, st.Ino}] = true
		return nil
	})
	return found, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func detachLoop(path string, files map[inode]bool) error {
	device, err := os.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer device.Close()
	info, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
	if errors.Is(err, unix.ENXIO) {
		return nil // detached meanwhile
	}
	if err != nil {
		return err
	}
	if !files[inode{info.Device, info.Inode}] {
		return nil
	}
	_, err = unix.IoctlRetInt(int(device.Fd()), unix.LOOP_CLR_FD)
	if errors.Is(err, unix.ENXIO) {
		return nil
	}
	return err
}
