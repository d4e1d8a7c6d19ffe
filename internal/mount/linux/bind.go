package linux

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
)

// Bind implements mount.Mounter.
func (m *Mounter) Bind(ctx context.Context, r mount.BindRequest) error {
	if err := r.Check(); err != nil {
		return err
	}
	return m.change(ctx, r.Target, func() error { return bind(r) })
}

func bind(r mount.BindRequest) error {
	known, err := identify(r.Device, r.Identity)
	if err != nil {
		return err
	}
	defer known.close()
	w := want{source: known, readOnly: r.ReadOnly, node: r.Source == "", context: r.Context}
	// Of a device what is open is bound, wherever its path leads by then.
	from, makePoint := tree{of: known.device}, mount.MakeFile
	if !w.node {
		from, makePoint = tree{path: r.Source}, mount.MakeDirectory
		entry, err := lookup(r.Source)
		if err != nil {
			return err
		}
		if entry == nil || !w.holds(entry) {
			return fmt.Errorf("%w: %s at %s", mount.ErrNotMounted, r.Device, r.Source)
		}
		if err := labelled(entry, w); err != nil {
			return err
		}
		w.readOnly = w.readOnly || readOnly(entry)
	}
	if done, err := mounted(r.Target, w); done || err != nil {
		return err
	}
	if err := makePoint(r.Target); err != nil {
		return err
	}
	if err := from.attachCopy(r.Target, r.ReadOnly); err != nil {
		return fmt.Errorf("binding %s at %s: %w", r.Device, r.Target, err)
	}
	if done, err := mounted(r.Target, w); !done {
		_ = unix.Unmount(r.Target, unix.UMOUNT_NOFOLLOW)
		return errors.Join(mount.ErrNotMounted, err)
	}
	return nil
}

// tree is what is bound: a directory by its path, or the node of a device that is open.
type tree struct {
	path string
	of   *os.File
}

// attachCopy binds in one step: the copy is made read-only before anybody can see
// it. A bind followed by a read-only remount would leave a writable mount behind if
// it stopped in between.
func (t tree) attachCopy(target string, readOnly bool) error {
	from, flags := unix.AT_FDCWD, uint(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if t.of != nil {
		from, flags = int(t.of.Fd()), flags|unix.AT_EMPTY_PATH
	}
	fd, err := unix.OpenTree(from, t.path, flags)
	if err != nil {
		return fmt.Errorf("copying the mount: %w", err)
	}
	defer unix.Close(fd)
	if readOnly {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
			return fmt.Errorf("making the mount read-only: %w", err)
		}
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// maxStacked bounds the mounts taken off one target, against a table that changes
// as fast as it is emptied.
const maxStacked = 100

// Unmount implements mount.Mounter.
func (m *Mounter) Unmount(ctx context.Context, target string) error {
	if err := mount.CheckPath(target); err != nil {
		return err
	}
	return m.change(ctx, target, func() error {
		for range maxStacked {
			entry, err := lookup(target)
			if entry == nil || err != nil {
				return err
			}
			err = unix.Unmount(target, unix.UMOUNT_NOFOLLOW)
			switch {
			case errors.Is(err, unix.EBUSY):
				return fmt.Errorf("%w: %s is mounted at %s and busy", provision.ErrInUse, entry.Source, target)
			case err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT): // gone already
				return fmt.Errorf("unmounting %s: %w", target, err)
			}
		}
		return fmt.Errorf("%w: mounts come to %s as fast as they are taken off", provision.ErrInUse, target)
	})
}
