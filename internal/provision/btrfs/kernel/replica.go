package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/provision/btrfs/sendstream"
)

// copyName is the attribute of a volume's directory with the record of its copy. It is not part of
// the volume's own record, which an agent that knows no copies writes anew without it.
const copyName = "trusted.berth.copy"

// copies has the methods of a Filesystem about the copies of volumes.
type copies struct{ f *Filesystem }

// Copy returns the record of a copy in a volume's directory, nil if it has none.
func (c copies) Copy(dir string) (record []byte, err error) {
	err = c.f.within(dir, func(d *os.File) error {
		record = make([]byte, 1<<16)
		n, err := unix.Fgetxattr(int(d.Fd()), copyName, record)
		if errors.Is(err, unix.ENODATA) {
			n, err = 0, nil
		}
		record = record[:max(n, 0)]
		return err
	})
	return record, err
}

// RecordCopy writes down the record of a copy.
func (c copies) RecordCopy(dir string, record []byte) error {
	return c.f.within(dir, func(d *os.File) error { return unix.Fsetxattr(int(d.Fd()), copyName, record, 0) })
}

// Bound is Limit for a subvolume that was destroyed, and for which others count.
func (c copies) Bound(id uint64, size int64) error {
	l := limitArgs{id: volumeLevel | id, flags: referenced, referenced: unlimited}
	if size > 0 {
		l.referenced = uint64(size)
	}
	if err := ioctl(c.f.top, write, doGroup, &groupArgs{1, l.id}); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("making the quota of subvolume %d: %w", id, err)
	}
	if err := ioctl(c.f.top, read, doLimit, &l); err != nil {
		return fmt.Errorf("limiting subvolume %d: %w", id, err)
	}
	return nil
}

// Generation returns the transaction that last changed the subvolume in a directory, as far as it is
// on the disk, and the subvolume.
func (c copies) Generation(dir string) (generation uint64, s Subvolume, err error) {
	err = c.f.within(dir+"/"+Data, func(d *os.File) error {
		var of subvolumeArgs
		err := ioctl(d, read, doSubvolumeInfo, &of)
		generation, s = of.generation, Subvolume{of.id, uuid(of.uuid)}
		return err
	})
	return generation, s, err
}

// Sync writes everything to the disks, also what tenants have in memory.
func (c copies) Sync() error { return unix.Syncfs(int(c.f.top.Fd())) }

// Seal makes the subvolume in a directory, which must be the one that is given, read-only.
func (c copies) Seal(dir string, is Subvolume) error {
	return c.f.within(dir+"/"+Data, func(d *os.File) error {
		if err := proved(d, is); err != nil {
			return err
		}
		var flags uint64
		if err := ioctl(d, read, doGetFlags, &flags); err != nil || flags&readOnly != 0 {
			return err
		}
		flags |= readOnly
		return ioctl(d, write, doSetFlags, &flags)
	})
}

// Send writes the subvolume in a directory into a pipe, as the difference to another subvolume
// unless that is zero. Both must be read-only. It ends when the other end of the pipe is closed.
func (c copies) Send(dir string, is, base Subvolume, pipe *os.File) error {
	return c.f.within(dir+"/"+Data, func(d *os.File) error {
		if err := proved(d, is); err != nil {
			return err
		}
		if err := unix.SetNonblock(int(pipe.Fd()), false); err != nil { // the kernel does not wait otherwise
			return err
		}
		a := sendArgs{fd: int64(pipe.Fd()), parent: base.ID} //nolint:gosec // a descriptor
		return uninterrupted(func() error { return ioctl(d, write, doSend, &a) })
	})
}

// Apply applies a stream to the subvolume in a directory, which must be the one that is given, and
// writes it to the disks.
func (c copies) Apply(ctx context.Context, dir string, is Subvolume, increment bool, pipe *os.File) error {
	return c.f.within(dir+"/"+Data, func(d *os.File) error {
		if err := proved(d, is); err != nil {
			return err
		}
		if err := sendstream.Apply(ctx, d, pipe, increment); err != nil {
			return err
		}
		return c.f.Sync()
	})
}
