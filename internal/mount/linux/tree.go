package linux

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/mount"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs/kernel"
)

// prove returns nil if a descriptor of a directory stands for a tree, or if nothing but its source
// tells the tree from others.
func prove(place *os.File, c provision.Content) error {
	if !mount.Proved(c) {
		return nil
	}
	return kernel.Prove(place, c.Identity)
}

// attributes are the flags of mount(2) as attributes of one mount. The others are the filesystem's.
var attributes = map[uintptr]int{
	unix.MS_RDONLY: unix.MOUNT_ATTR_RDONLY, unix.MS_NODEV: unix.MOUNT_ATTR_NODEV, unix.MS_NOEXEC: unix.MOUNT_ATTR_NOEXEC,
	unix.MS_NOSUID: unix.MOUNT_ATTR_NOSUID, unix.MS_NOATIME: unix.MOUNT_ATTR_NOATIME,
	unix.MS_STRICTATIME: unix.MOUNT_ATTR_STRICTATIME, unix.MS_NODIRATIME: unix.MOUNT_ATTR_NODIRATIME,
}

// stays says whether the filesystem on a block device is read-only. A mount that does not ask for that
// would make it writable.
func stays(node string, options []string) (bool, error) {
	looks, err := kernel.Detached(node, append(slices.Clone(options), "ro"), 0)
	if err != nil {
		return false, err
	}
	defer looks.Close()
	var st unix.Statfs_t
	err = unix.Fstatfs(int(looks.Fd()), &st)
	return st.Flags&unix.ST_RDONLY != 0, err
}

// attach mounts a filesystem. It mounts one that must be proved at no path first. It moves the mount
// to the target once the mount is proved to show the volume.
func attach(r mount.Request) error {
	from, own := mount.Arguments(r.Content)
	if !mount.Proved(r.Content) {
		flags, data := options(r, own)
		return unix.Mount(from, r.Target, r.Filesystem, flags, data)
	}
	flags, _ := options(r, nil)
	attribute := 0
	for flag, is := range attributes {
		if flags&flag != 0 {
			attribute |= is
		}
	}
	if label := mount.Context(r.Options); label != "" {
		own = append(own, "context="+label)
	}
	readOnly, err := stays(from, own)
	switch {
	case err != nil:
		return err
	case readOnly && flags&unix.MS_RDONLY == 0:
		return fmt.Errorf("%w: the filesystem on %s is read-only, and stays so: an administrator mounted it so, or it met an error (the kernel's log says more)", provision.ErrUnavailable, from)
	case readOnly:
		own = append(own, "ro")
	}
	mounted, err := kernel.Detached(from, own, attribute)
	if err != nil {
		return err
	}
	defer mounted.Close()
	if err := prove(mounted, r.Content); err != nil {
		return err
	}
	return unix.MoveMount(int(mounted.Fd()), "", unix.AT_FDCWD, r.Target, unix.MOVE_MOUNT_F_EMPTY_PATH)
}
