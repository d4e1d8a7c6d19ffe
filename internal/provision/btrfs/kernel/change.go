package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Data is the subvolume in the directory of a volume, and recordName the attribute of that
// directory with its record. Who has the volume mounted sees what is in the subvolume, and neither
// the directory nor its attributes.
const (
	Data       = "data"
	recordName = "trusted.berth.record"
)

// Names lists a directory; nothing if it is not there.
func (f *Filesystem) Names(dir string) ([]string, error) {
	d, err := f.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.Readdirnames(-1)
}

// Read returns the record of a directory, nil if it has none, and its inode.
func (f *Filesystem) Read(dir string) (record []byte, inode uint64, err error) {
	err = f.within(dir, func(d *os.File) error {
		var st unix.Stat_t
		if err := unix.Fstat(int(d.Fd()), &st); err != nil {
			return err
		}
		inode, record = st.Ino, make([]byte, 1<<16)
		n, err := unix.Fgetxattr(int(d.Fd()), recordName, record)
		if errors.Is(err, unix.ENODATA) {
			n, err = 0, nil
		}
		record = record[:max(n, 0)]
		return err
	})
	return record, inode, err
}

// Record writes down the record of a directory.
func (f *Filesystem) Record(dir string, record []byte) error {
	return f.within(dir, func(d *os.File) error { return unix.Fsetxattr(int(d.Fd()), recordName, record, 0) })
}

// Make makes a directory, with its parents, that only root can look into.
func (f *Filesystem) Make(dir string) error { return f.root.MkdirAll(dir, 0o700) }

// Move renames a directory.
func (f *Filesystem) Move(from, to string) error { return f.root.Rename(from, to) }

// Remove removes an empty directory.
func (f *Filesystem) Remove(dir string) error { return f.root.Remove(dir) }

// Subvolume makes an empty subvolume in a directory.
func (f *Filesystem) Subvolume(dir string) (s Subvolume, err error) {
	return f.new(dir, func(d *os.File) error { return ioctl(d, write, doSubvolume, named(Data)) })
}

// Snapshot makes a snapshot in a directory, of the subvolume in another, which must be the one that is
// given.
func (f *Filesystem) Snapshot(of string, is Subvolume, dir string, kept bool) (s Subvolume, err error) {
	source, err := f.root.Open(of + "/" + Data)
	if err != nil {
		return s, err
	}
	defer source.Close()
	a := nameArgsV2{fd: int64(source.Fd())} //nolint:gosec // a descriptor
	if kept {
		a.flags = readOnly
	}
	if err := proved(source, is); err != nil {
		return s, err
	}
	return f.new(dir, func(d *os.File) error { return ioctl(d, write, doSnapshot, a.named(Data)) })
}

// new returns the subvolume that was made in a directory.
func (f *Filesystem) new(dir string, made func(d *os.File) error) (s Subvolume, err error) {
	if err = f.within(dir, made); err != nil {
		return s, err
	}
	err = f.within(dir+"/"+Data, func(d *os.File) error {
		_, s, err = inspect(d)
		return err
	})
	return s, err
}

// Limit bounds what a subvolume takes together with those in it; 0 takes the bound away.
func (f *Filesystem) Limit(id uint64, size int64) error {
	l := limitArgs{id: volumeLevel | id, flags: referenced, referenced: unlimited}
	if size > 0 {
		l.referenced = uint64(size)
	}
	if err := ioctl(f.top, write, doGroup, &groupArgs{1, l.id}); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("making the quota of subvolume %d: %w", id, err)
	}
	if err := ioctl(f.top, read, doLimit, &l); err != nil {
		return fmt.Errorf("limiting subvolume %d: %w", id, err)
	}
	return f.Count(id, id, true)
}

// Count has a subvolume count for the limit of a volume, or no longer count for it.
func (f *Filesystem) Count(id, volume uint64, counts bool) error {
	a := assignArgs{member: id, group: volumeLevel | volume}
	if counts {
		a.assign = 1
	}
	err := ioctl(f.top, write, doAssign, &a)
	if err != nil && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("counting subvolume %d for %d (%v): %w", id, volume, counts, err)
	}
	return nil
}

// EnableQuotas has everything counted that is written from now on.
func (f *Filesystem) EnableQuotas() error {
	return ioctl(f.top, read|write, doQuota, &quotaArgs{command: simpleQuotas})
}

// Commit writes all changes to the disks, and lets the kernel free what was destroyed. It does not
// wait for what tenants have in memory.
func (f *Filesystem) Commit() error {
	var transaction uint64
	if err := ioctl(f.top, read, doBeginCommit, &transaction); err != nil {
		return err
	}
	return ioctl(f.top, write, doAwaitCommit, &transaction)
}

// Path leads other programs to the top of the filesystem while it is open.
func (f *Filesystem) Path() string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.top.Fd()) }

func (f *Filesystem) within(dir string, do func(d *os.File) error) error {
	d, err := f.root.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := do(d); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}
