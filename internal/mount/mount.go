package mount

import (
	"context"
	"errors"

	"berth.dev/berth/internal/provision"
)

// Errors of a Mounter. It also returns errors of package provision with the
// same meaning: ErrInvalid, ErrConflict, ErrInUse, ErrNotFound (no such
// device) and ErrUnavailable (the path leads to another device, or the device does not answer
// in time).
var (
	// ErrCorrupt: only an administrator can repair the filesystem. Berth never makes a
	// new one in its place.
	ErrCorrupt = errors.New("filesystem is damaged")
	// ErrNotMounted: nothing, or something other than the device, is mounted there.
	ErrNotMounted = errors.New("not mounted")
)

// Request asks for a device's filesystem at a directory.
type Request struct {
	// Content of the volume.
	Content provision.Content
	// Target directory; Mount makes it, with its parents, if it is not there.
	Target string
	// Filesystem of the volume, as its provisioner recorded it.
	Filesystem string
	// Options by their names in mount(8), one per element. CheckOptions must accept them.
	Options  []string
	ReadOnly bool
	// Whole has all of the filesystem checked before, and not only what an unclean end makes necessary. It is for
	// filesystems on block devices.
	Whole bool
}

// BindRequest asks for a mounted filesystem, or a device itself, at a second
// place.
type BindRequest struct {
	// Content of the volume.
	Content provision.Content
	// Source is the directory where the volume is mounted. Empty binds the device itself
	// onto a file: a raw block volume.
	Source string
	// Target directory or, for a raw block volume, file; Bind makes it if it is not there.
	Target   string
	ReadOnly bool
	// Context is the SELinux context that the volume must be mounted with; empty accepts
	// any. A raw block volume is mounted with none.
	Context string
}

// GrowRequest asks to grow a mounted filesystem to its device's size. A tree has the size that
// its provisioner gave it.
type GrowRequest struct {
	Content            provision.Content
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
	// Mount mounts a filesystem. It first makes the repairs that the filesystem's tool
	// makes safely. It returns at once if the same mount is at the target already. Another
	// mount there, or one with another SELinux context, is ErrConflict. A device without
	// the recorded filesystem is ErrCorrupt.
	Mount(ctx context.Context, r Request) error

	// Bind makes a mounted filesystem or a device appear at the target. The source
	// must be a mount of the device, else the error is ErrNotMounted: an empty directory
	// must never reach a pod in place of its data. A source with another SELinux context
	// is ErrConflict.
	Bind(ctx context.Context, r BindRequest) error

	// Unmount removes every mount from the target and leaves the empty mount point. A
	// target that is not mounted or not there is no error; a busy one is ErrInUse.
	Unmount(ctx context.Context, target string) error

	// Grow makes a filesystem mounted at the target as large as its device. It
	// returns at once if it is as large already. A read-only filesystem stays as it is, which is
	// no error: nothing can be written to it until it is mounted anew, and then it is grown.
	Grow(ctx context.Context, r GrowRequest) error

	// Trim discards the free blocks in a part of a filesystem that is mounted at the target. The
	// mount is busy meanwhile, so the caller asks for small parts. A filesystem of which a smaller
	// part would be discarded again by the next call is trimmed further: Trimmed.Next tells. One
	// that can discard nothing, or is read-only, is ErrUnsupported.
	Trim(ctx context.Context, r TrimRequest) (Trimmed, error)

	// Stats returns the figures of the filesystem mounted at a path, or
	// ErrUnavailable if its device does not answer.
	Stats(ctx context.Context, path string) (Stats, error)
}
