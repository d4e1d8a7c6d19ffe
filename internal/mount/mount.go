package mount

import (
	"context"
	"errors"

	"berth.dev/berth/internal/provision"
)

// Errors of a Mounter. The others it returns are those of package provision with
// the same meaning: ErrInvalid, ErrConflict, ErrInUse, ErrNotFound (no such
// device) and ErrUnavailable (the path leads to another device, or the device does not answer
// in time).
var (
	// ErrCorrupt: the filesystem cannot be repaired without an administrator. It is
	// never made anew.
	ErrCorrupt = errors.New("filesystem is damaged")
	// ErrNotMounted: nothing, or something else than the device, is mounted there.
	ErrNotMounted = errors.New("not mounted")
)

// Request asks for a device's filesystem at a directory.
type Request struct {
	// Device is the path of a block device, or the name of a dataset of ZFS.
	Device string
	// Identity that the block device is proved by before anything is done with it.
	Identity provision.Identity
	// Target directory; it is made, with its parents, if it is not there.
	Target string
	// Filesystem on the device, as its provisioner recorded it.
	Filesystem string
	// Options by the names mount(8) gives them, one per element; those that
	// CheckOptions accepts.
	Options  []string
	ReadOnly bool
}

// BindRequest asks for a mounted filesystem, or a device itself, at a second
// place.
type BindRequest struct {
	// Device of the volume, and its identity.
	Device   string
	Identity provision.Identity
	// Source is the directory where Device is mounted. Empty binds the device itself
	// onto a file: a raw block volume.
	Source string
	// Target directory or, for a raw block volume, file; it is made if not there.
	Target   string
	ReadOnly bool
	// Context is the SELinux context that Device is to be mounted with; empty is content
	// with any. A raw block volume is mounted with none.
	Context string
}

// GrowRequest asks to grow a mounted filesystem to its device's size. A dataset has the size
// that its provisioner gave it.
type GrowRequest struct {
	Device             string
	Identity           provision.Identity
	Target, Filesystem string
}

// Stats are the figures of a mounted filesystem.
type Stats struct {
	// Total, Available (to unprivileged users) and Used bytes.
	Total, Available, Used int64
	// Inodes are zero for filesystems that do not count them.
	Inodes, InodesAvailable, InodesUsed int64
}

// Mounter mounts the volumes of one node. Methods may be called concurrently;
// operations on different targets do not wait for each other.
type Mounter interface {
	// Mount mounts a filesystem after repairing what its tool repairs safely. It
	// returns at once if just that is mounted at the target already; if something
	// else is, or with another SELinux context, ErrConflict. A device without the recorded filesystem is ErrCorrupt.
	Mount(ctx context.Context, r Request) error

	// Bind makes a mounted filesystem or a device appear at the target. The source
	// must be a mount of the device, else ErrNotMounted: an empty directory must
	// never reach a pod in place of its data. One with another SELinux context is
	// ErrConflict.
	Bind(ctx context.Context, r BindRequest) error

	// Unmount takes every mount off the target and leaves the empty mount point; a
	// target that is not mounted or not there is no error. ErrInUse if it is busy.
	Unmount(ctx context.Context, target string) error

	// Grow makes a filesystem mounted at the target as large as its device. It
	// returns at once if it is.
	Grow(ctx context.Context, r GrowRequest) error

	// Stats returns the figures of the filesystem mounted at a path, or
	// ErrUnavailable if its device does not answer.
	Stats(ctx context.Context, path string) (Stats, error)
}
