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
	known, err := identify(r.Content)
	if err != nil {
		return err
	}
	defer known.close()
	w := want{source: known, readOnly: r.ReadOnly, node: r.Source == "", context: r.Context}
	// Bind the opened device itself: its path may lead elsewhere by then.
	from, makePoint := origin{of: known.device}, mount.MakeFile
	if !w.node {
		from, makePoint = origin{path: r.Source}, mount.MakeDirectory
		entry, err := lookup(r.Source)
		if err != nil {
			return err
		}
		if entry == nil || !w.holds(entry) {
			return fmt.Errorf("%w: %s at %s", mount.ErrNotMounted, r.Content.Source, r.Source)
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
	if err := from.attachCopy(r.Content, r.Target, r.ReadOnly); err != nil {
		return fmt.Errorf("binding %s at %s: %w", r.Content.Source, r.Target, err)
	}
	if done, err := mounted(r.Target, w); !done {
		_ = unix.Unmount(r.Target, unix.UMOUNT_NOFOLLOW)
		return errors.Join(mount.ErrNotMounted, err)
	}
	return nil
}

// origin is the source of a bind: a directory by its path, or the node of an open device.
type origin struct {
	path string
	of   *os.File
}

// attachCopy binds in one step: it proves that the copy is the volume's, and makes it read-only,
// before any process can see it. The rejected alternative, a bind and then a read-only remount, would leave a
// writable mount behind if Berth stopped in between.
func (o origin) attachCopy(c provision.Content, target string, readOnly bool) error {
	from, flags := unix.AT_FDCWD, uint(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if o.of != nil {
		from, flags = int(o.of.Fd()), flags|unix.AT_EMPTY_PATH
	}
	fd, err := unix.OpenTree(from, o.path, flags)
	if err != nil {
		return fmt.Errorf("copying the mount: %w", err)
	}
	copied := os.NewFile(uintptr(fd), o.path)
	defer copied.Close()
	if err := prove(copied, c); err != nil {
		return err
	}
	if readOnly {
		attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
		if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr); err != nil {
			return fmt.Errorf("making the mount read-only: %w", err)
		}
	}
	return unix.MoveMount(fd, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}

// maxStacked bounds the mounts that Unmount removes from one target, in case others mount
// there as fast as it unmounts.
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
