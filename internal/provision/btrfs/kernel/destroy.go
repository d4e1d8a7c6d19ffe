package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Destroy removes a subvolume that holds no other, whatever its tenant forbade. What it held is
// freed in the background. Its parent is opened by its number: a path to it may be longer than the kernel
// takes.
func (f *Filesystem) Destroy(r Root) error {
	own, err := removal{f}.permit(r.ID, firstFree)
	if err != nil {
		return fmt.Errorf("permitting that subvolume %d is removed: %w", r.ID, err)
	}
	defer own.Close()
	within, err := removal{f}.permit(r.Parent, r.Directory)
	if err != nil {
		return fmt.Errorf("permitting that subvolume %d is removed: %w", r.ID, err)
	}
	defer within.Close()
	if err := names(within, r); err != nil {
		return err
	}
	return ioctl(within, write, doDestroy, named(r.Name))
}

// names returns nil if the name of a subvolume in a directory leads to it.
func names(dir *os.File, r Root) error {
	fd, err := unix.Openat(int(dir.Fd()), r.Name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("opening subvolume %d: %w", r.ID, err)
	}
	is := os.NewFile(uintptr(fd), r.Name)
	defer is.Close()
	return proved(is, r.Subvolume)
}

// proved returns nil if a directory is in a subvolume.
func proved(dir *os.File, want Subvolume) error {
	switch _, got, err := inspect(dir); {
	case err != nil:
		return err
	case got != want:
		return fmt.Errorf("in place of subvolume %d (%s) there is %d (%s)", want.ID, want.UUID, got.ID, got.UUID)
	}
	return nil
}

// removal knows what a tenant can do to keep a subvolume, and undoes it.
type removal struct{ *Filesystem }

// permit opens a directory, and takes off what keeps it, and what it holds, from being removed: its
// flags, and that its subvolume is read-only or limited by itself.
func (f removal) permit(subvolume, inode uint64) (*os.File, error) {
	if subvolume != topLevel {
		if err := f.unbind(subvolume); err != nil {
			return nil, err
		}
	}
	dir, err := f.directory(subvolume, inode)
	if err != nil {
		return nil, err
	}
	const forbids = 0x10 | 0x20 // immutable, append only
	flags, err := unix.IoctlGetUint32(int(dir.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && flags&forbids != 0 {
		err = unix.IoctlSetPointerInt(int(dir.Fd()), unix.FS_IOC_SETFLAGS, int(flags&^forbids))
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// unbind makes a subvolume writable, and takes its own limits away. A tenant can set both.
func (f removal) unbind(subvolume uint64) error {
	l := limitArgs{id: subvolume, flags: referenced | exclusive, referenced: unlimited, exclusive: unlimited}
	if err := ioctl(f.top, read, doLimit, &l); err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTCONN) {
		return fmt.Errorf("taking the limit of subvolume %d away: %w", subvolume, err)
	}
	root, err := f.directory(subvolume, firstFree)
	if err != nil {
		return err
	}
	defer root.Close()
	var flags uint64
	if err := ioctl(root, read, doGetFlags, &flags); err != nil || flags&readOnly == 0 {
		return err
	}
	flags &^= readOnly
	return ioctl(root, write, doSetFlags, &flags)
}

// directory opens a directory of a subvolume by its inode.
func (f removal) directory(subvolume, inode uint64) (*os.File, error) {
	const ofInode = 0x4d
	var handle [20]byte // the inode, its subvolume, and any generation
	binary.NativeEndian.PutUint64(handle[:], inode)
	binary.NativeEndian.PutUint64(handle[8:], subvolume)
	fd, err := unix.OpenByHandleAt(int(f.top.Fd()), unix.NewFileHandle(ofInode, handle[:]), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("opening inode %d of subvolume %d: %w", inode, subvolume, err)
	}
	return os.NewFile(uintptr(fd), "directory"), nil
}

// Forget removes the quota of a volume that was destroyed. What others still share with it, and with
// the subvolumes that were in it, stays counted for these. A group that others are in is not the volume's.
func (f *Filesystem) Forget(id uint64) error {
	if err := f.Count(id, id, false); err != nil {
		return err
	}
	counted, err := f.Counted()
	if err != nil {
		return err
	}
	members := Members(counted, id)
	if len(members) > 0 {
		roots, err := f.Roots()
		if err != nil {
			return err
		}
		for _, member := range members {
			if roots[member].Parent != 0 {
				return nil
			}
		}
	}
	for _, member := range members {
		if err := f.Count(member, id, false); err != nil {
			return err
		}
	}
	err = ioctl(f.top, write, doGroup, &groupArgs{0, volumeLevel | id})
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing the quota of subvolume %d: %w", id, err)
	}
	return nil
}
