package provision

import (
	"context"

	"berth.dev/berth/api/v1alpha1"
)

// PoolRef names a pool of this node.
type PoolRef struct {
	// Type of the provisioner that serves it.
	Type string
	// Name on this node, unique among the pools of all types: "vg0" is a volume
	// group, "vg0/thin" a thin pool in it, "zfs:tank" a zpool, "zfs:tank/berth" a filesystem
	// in that, "btrfs:data" a filesystem of btrfs, and DiskPrefix begins the name of a whole disk.
	Name string
}

// Volume is a provisioner's record of one volume.
type Volume struct {
	// ID is the CSI volume id.
	ID string
	// Pool that holds it.
	Pool PoolRef
	// Size in bytes, rounded up to the pool's allocation unit.
	Size int64
	// Content says where its data is.
	Content Content
	// Filesystem that was made on it, or Raw. Empty means blank: the volume was never
	// formatted, and never given to a pod unless by a Berth that did not record Raw yet.
	Filesystem string
	// Problem is empty, or says why the volume cannot be used.
	Problem string
	// Inline names the owner of an inline volume; zero for a volume that has a Volume
	// object. It is recorded together with the volume and never changes.
	Inline Inline
	// Source that it began as a copy of. It is recorded together with the volume, too.
	Source Source
	// Claim that it was made for, as NAMESPACE/NAME, by the labels recorded with it; empty if
	// they do not say. It is a hint for people, and proves nothing.
	Claim string
	// Copying is set until it is a complete copy of its source. It cannot be used before.
	Copying bool
}

// IsRaw says whether the volume's record names no filesystem: it is blank, or Raw.
func (v Volume) IsRaw() bool { return v.Filesystem == "" || v.Filesystem == Raw }

// Inline names the owner of an inline volume, which lives and dies with a pod.
type Inline struct {
	// PodUID of the pod, and Name of the volume in the pod's spec.
	PodUID, Name string
}

// Pool is one pool with its volumes and snapshots, from one atomic report.
type Pool struct {
	PoolRef
	// Total, Foreign and Free bytes. Foreign is used by others than Berth, and includes the
	// overhead of metadata. Free is Total - Foreign - the sum of Volumes, Snapshots and
	// Wiping. In a thin pool Foreign and the sum count promised bytes, so Free is negative
	// once more than Total is promised.
	Total, Foreign, Free int64
	// Unit is the allocation unit in bytes: sizes are rounded up to it. A disk that
	// is handed out whole is one unit.
	Unit int64
	// Fill of a thin pool; zero for a pool that allocates all the bytes it promises.
	Fill Fill
	// Media of a whole disk, MediaSSD or MediaHDD; else empty.
	Media string
	// Paths of a whole disk, by which a class may name it: its device node and the
	// links to that node.
	Paths []string
	// Problem is empty, or says why nothing new may be placed in the pool.
	Problem string
	// Volumes and Snapshots of Berth in this pool. The room of the snapshots is part
	// of neither Foreign nor Free.
	Volumes   []Volume
	Snapshots []Snapshot
	// Wiping lists volumes that were deleted and take room until they are wiped. They are
	// part of neither Foreign, Free nor Volumes. The Problem of one says why the last
	// attempt to wipe it failed; the provisioner tries again.
	Wiping []Volume
}

// Fill is how much of a thin pool holds data.
type Fill struct {
	// Data in bytes.
	Data int64
	// Metadata in percent, rounded up.
	Metadata int
}

// The media of whole disks.
const (
	MediaSSD = string(v1alpha1.SSD)
	MediaHDD = string(v1alpha1.HDD)
)

// CreateRequest asks for a volume.
type CreateRequest struct {
	ID   string
	Pool PoolRef
	// Size in bytes, at least.
	Size int64
	// Limits of the pool's use.
	Limits Limits
	// Labels are kept with the volume for people to read: LabelNamespace and LabelClaim.
	Labels map[string]string
	// Inline names the owner of an inline volume; zero for any other.
	Inline Inline
	// Source that it shall be a copy of, in the same pool. A pool whose provisioner
	// has no snapshots gives ErrUnsupported, a source that is not on the node ErrNotFound,
	// and one that is larger ErrInvalid.
	Source Source
	// Wipe says how its bytes are erased once it is deleted. It is recorded with the
	// volume where that matters: a provisioner that hands out nothing unwiped ignores it.
	Wipe Wipe
	// Tree is the filesystem that the volume is to be by itself; empty for a block device. A
	// source must be of the same kind.
	Tree string
	// Tuning says how the pool stores the volume.
	Tuning Tuning
}

// ExpandRequest asks for a larger volume.
type ExpandRequest struct {
	ID string
	// Size in bytes, at least. A smaller size than the present one is met already.
	Size int64
	// Limits of the pool's use.
	Limits Limits
}

// FormatRequest asks for a filesystem on a blank volume.
type FormatRequest struct {
	ID         string
	Filesystem string
	// Options of mkfs in its own syntax, limited to those that package mkfs allows. They shape
	// the filesystem when it is made and have no effect afterwards.
	Options string
}

// Provisioner carves volumes out of the pools of one node. All methods may be
// called concurrently; calls for different volumes do not wait for each other
// longer than the pool itself demands. Errors are of this package's classes.
type Provisioner interface {
	// Report returns every pool on the node with Berth's volumes in it. With an error it
	// still returns the pools that it knows of, if any. The error names the pools or the
	// member that did not answer. A pool that is not returned then may still exist.
	Report(ctx context.Context) ([]Pool, error)

	// Changed signals that a pool may have changed, by this provisioner or by others;
	// receivers call Report. It never blocks the sender.
	Changed() <-chan struct{}

	// Create makes a volume. If it exists with a size that Size rounds to, for the
	// same owner and from the same source, Create returns it; if it exists otherwise, the
	// error is ErrConflict. Without room the error is ErrNoSpace, for a pool that is not
	// there ErrPoolMissing, and while a deleted volume of that id is being wiped there
	// ErrUnavailable.
	Create(ctx context.Context, r CreateRequest) (Volume, error)

	// Get returns a volume, or ErrNotFound if the node does not have it. It answers from
	// memory and starts no process if the volume is known and its device is there. A
	// volume that is there and cannot be used has a Problem.
	Get(ctx context.Context, id string) (Volume, error)

	// Expand makes a volume at least Size large and returns it.
	Expand(ctx context.Context, r ExpandRequest) (Volume, error)

	// Format makes the filesystem on a volume whose record says blank, then
	// changes the record. For a volume that is a filesystem by itself, and for Raw, it makes
	// nothing, and only records that the volume may hold data now. It returns at once for a
	// volume recorded with the same filesystem; another one is ErrConflict. A crash between
	// the two steps leaves the record blank. That loses no data: nothing was mounted yet.
	Format(ctx context.Context, r FormatRequest) (Volume, error)

	// Delete removes a volume; one that is gone is no error. The volume is gone when Delete
	// returns. Its space is free once it is wiped as the request to Create asked. An open
	// device is ErrInUse. A volume that was seen in a pool which is now missing is
	// ErrPoolMissing: its data may come back. A provisioner that has never seen the pool
	// cannot know of the volume. So a caller that knows the pool's name looks for the pool
	// in Report before it believes that the volume is gone.
	Delete(ctx context.Context, id string) error
}
