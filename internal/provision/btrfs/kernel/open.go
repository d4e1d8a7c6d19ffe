package kernel

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Detached mounts a part of the filesystem on a block device at no path, with options of btrfs and
// attributes of the mount. The mount goes when the descriptor is closed, unless it was moved to a
// path before.
func Detached(node string, options []string, attributes int) (*os.File, error) {
	fd, err := unix.Fsopen("btrfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("opening btrfs: %w", err)
	}
	defer unix.Close(fd)
	err = unix.FsconfigSetString(fd, "source", node)
	for _, o := range options {
		key, value, valued := strings.Cut(o, "=")
		switch {
		case err != nil:
		case valued:
			err = unix.FsconfigSetString(fd, key, strings.Trim(value, `"`))
		default:
			err = unix.FsconfigSetFlag(fd, o)
		}
	}
	if err == nil {
		err = unix.FsconfigCreate(fd)
	}
	mounted := -1
	if err == nil {
		mounted, err = unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, attributes)
	}
	if err != nil {
		return nil, fmt.Errorf("mounting %s: %w", node, err)
	}
	return os.NewFile(uintptr(mounted), node), nil
}

// readable opens the directory of a descriptor that only stands for it.
func readable(place *os.File) (*os.File, error) {
	fd, err := unix.Openat(int(place.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", place.Name(), err)
	}
	return os.NewFile(uintptr(fd), place.Name()), nil
}

// Filesystem is an open filesystem. Its paths begin at its top, and lead nowhere else.
type Filesystem struct {
	copies
	users
	mount, top *os.File
	root       *os.Root
}

// Open opens the mounted filesystem of a UUID, to look at it or to change it. If it is mounted
// read-only it stays so, and is opened for no change.
func Open(fsid string, changes bool) (*Filesystem, error) {
	node, err := nodeOf(fsid)
	if err != nil {
		return nil, err
	}
	f, err := open(node, fsid, "ro")
	if err != nil || !changes {
		return f, err
	}
	defer f.Close()
	if stays, err := f.readOnly(); stays || err != nil {
		return nil, errors.Join(err, unix.EROFS)
	}
	return Bring(node, fsid)
}

// readOnly says whether nothing can be written to the filesystem through any of its mounts. A
// further mount that asks for no changes does not count.
func (f *Filesystem) readOnly() (bool, error) {
	var st unix.Statfs_t
	err := unix.Fstatfs(int(f.top.Fd()), &st)
	return st.Flags&unix.ST_RDONLY != 0, err
}

// Bring mounts the filesystem of a UUID that is on a block device.
func Bring(node, fsid string) (*Filesystem, error) { return open(node, fsid) }

func open(node, fsid string, options ...string) (*Filesystem, error) {
	f := &Filesystem{}
	f.copies, f.users = copies{f}, users{f}
	if err := f.open(node, fsid, options); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func (f *Filesystem) open(node, fsid string, options []string) (err error) {
	if f.mount, err = Detached(node, append(options, fmt.Sprintf("subvolid=%d", topLevel)), 0); err != nil {
		return err
	}
	if f.top, err = readable(f.mount); err != nil {
		return err
	}
	if f.root, err = os.OpenRoot(fmt.Sprintf("/proc/self/fd/%d", f.top.Fd())); err != nil {
		return fmt.Errorf("opening the top of %s: %w", node, err)
	}
	var info infoArgs
	if err = ioctl(f.top, read, doInfo, &info); err == nil && uuid(info.fsid) != fsid {
		err = fmt.Errorf("%s has filesystem %s, not %s", node, uuid(info.fsid), fsid)
	}
	return err
}

// Close closes the filesystem, which unmounts it if nothing else has it mounted.
func (f *Filesystem) Close() {
	if f.root != nil {
		f.root.Close()
	}
	for _, each := range []*os.File{f.top, f.mount} {
		if each != nil {
			each.Close()
		}
	}
}
