package provision

import (
	"context"
	"strings"
)

// The types of provisioners, as in PoolClass.
const (
	// LVM carves thick logical volumes out of volume groups.
	LVM = "LVM"
	// LVMThin carves thin volumes out of thin pools.
	LVMThin = "LVMThin"
	// ZFS carves zvols and datasets out of zpools.
	ZFS = "ZFS"
	// Device hands out whole disks.
	Device = "Device"
)

// What the names of pools begin with that no name of LVM's can.
const (
	// DiskPrefix begins the names of whole disks.
	DiskPrefix = "disk:"
	// ZFSPrefix begins those of zpools, and of filesystems in them.
	ZFSPrefix = "zfs:"
)

// PoolRef names a pool of this node.
type PoolRef struct {
	// Type of the provisioner that serves it.
	Type string
	// Name on this node, unique among the pools of all types: "vg0" is a volume
	// group, "vg0/thin" a thin pool in it, "zfs:tank" a zpool, "zfs:tank/berth" a filesystem
	// in that, and DiskPrefix begins the name of a whole disk.
	Name string
}

// TypeOf is the type of a pool by the form of its name.
func TypeOf(name string) string {
	switch {
	case strings.HasPrefix(name, DiskPrefix):
		return Device
	case strings.HasPrefix(name, ZFSPrefix):
		return ZFS
	case strings.Contains(name, "/"):
		return LVMThin
	default:
		return LVM
	}
}

// Volume is a provisioner's record of one volume.
type Volume struct {
	// ID is the CSI volume id.
	ID string
	// Pool that holds it.
	Pool PoolRef
	// Size in bytes, rounded up to the pool's allocation unit.
	Size int64
	// Device is what is mounted: the path of its block device or, of a volume that is a
	// filesystem of ZFS, the name of the dataset.
	Device string
	// Identity that Device is proved by before it is used; empty for a dataset.
	Identity Identity
	// Filesystem that was made on it, or Raw; empty means blank: never formatted, and, unless an
	// older Berth did so, never given to a pod.
	Filesystem string
	// Problem is empty, or says why the volume cannot be used.
	Problem string
	// Inline is whose inline volume it is; zero for a volume that has a Volume
	// object. It is recorded together with the volume and never changes.
	Inline Inline
	// Source that it began as a copy of; recorded likewise.
	Source Source
	// Copying is set while it is not yet a copy of its source and cannot be used.
	Copying bool
}

// IsRaw says whether no filesystem was made on a block device.
func (v Volume) IsRaw() bool { return v.Filesystem == "" || v.Filesystem == Raw }

// Inline names the owner of an inline volume, which lives and dies with a pod.
type Inline struct {
	// PodUID of the pod, and Name of the volume in the pod's spec.
	PodUID, Name string
}

// Pool is one pool and what is in it, from one atomic report.
type Pool struct {
	PoolRef
	// Total, Foreign and Free bytes. Foreign is what others than Berth use;
	// Total - Foreign - the sum of Volumes and Wiping is Free, up to metadata overhead,
	// which counts as foreign. In a thin pool they are what was promised, and Free is
	// negative once that is more than there is.
	Total, Foreign, Free int64
	// Unit is the allocation unit in bytes: sizes are rounded up to it. A disk that
	// is handed out whole is one unit.
	Unit int64
	// Fill of a thin pool; zero for a pool that sets aside what it promises.
	Fill Fill
	// Media of a whole disk, MediaSSD or MediaHDD; else empty.
	Media string
	// Paths of a whole disk, by which a class may name it: its device node and the
	// links to that.
	Paths []string
	// Problem is empty, or says why nothing new may be placed in the pool.
	Problem string
	// Volumes and Snapshots of Berth in this pool. What the snapshots take is part
	// of neither Foreign nor Free.
	Volumes   []Volume
	Snapshots []Snapshot
	// Wiping are volumes that were deleted and take room until they are wiped; they are
	// part of neither Foreign, Free nor Volumes. The problem of one is why the last try
	// failed; it is tried again.
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
	MediaSSD = "SSD"
	MediaHDD = "HDD"
)

// CreateRequest asks for a volume.
type CreateRequest struct {
	ID   string
	Pool PoolRef
	// Size in bytes, at least.
	Size int64
	// Limits of the pool's use.
	Limits Limits
	// Labels are kept with the volume for people to read: claim and namespace.
	Labels map[string]string
	// Inline is whose inline volume it is; zero for any other.
	Inline Inline
	// Source that it shall be a copy of, in the same pool. A pool whose provisioner
	// has no snapshots gives ErrUnsupported, a source that is not on the node ErrNotFound,
	// and one that is larger ErrInvalid.
	Source Source
	// Wipe is what becomes of its bytes once it is deleted. It is recorded with the
	// volume where that matters: a provisioner that hands out nothing unwiped ignores it.
	Wipe Wipe
	// Filesystem that the volume is by itself, Dataset; empty for a block device. A source
	// must be of the same kind.
	Filesystem string
	// ZFS says how a volume is kept in a zpool; other provisioners ignore it.
	ZFS ZFSOptions
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
	// Options of mkfs in its own words, of those that package mkfs allows. They shape the
	// filesystem when it is made and count for nothing afterwards.
	Options string
}

// Provisioner carves volumes out of the pools of one node. All methods may be
// called concurrently; calls for different volumes do not wait for each other
// longer than the pool itself demands. Errors are of this package's classes.
type Provisioner interface {
	// Report returns every pool on the node with Berth's volumes in it. With an error it
	// returns those that it knows of all the same, and none if it knows nothing: the error
	// names what could not be asked, and a pool that is not among them may still be there.
	Report(ctx context.Context) ([]Pool, error)

	// Changed signals that a pool may have changed by other hands or by this
	// provisioner; receivers call Report. It never blocks the sender.
	Changed() <-chan struct{}

	// Create makes a volume. If it exists with a size that Size rounds to, for the
	// same owner and from the same source, it is returned; else the error is ErrConflict. No
	// room is ErrNoSpace, a pool that is not there ErrPoolMissing. While a deleted volume
	// of that id is being wiped there the error is ErrUnavailable.
	Create(ctx context.Context, r CreateRequest) (Volume, error)

	// Get returns a volume from the provisioner's state without starting a
	// process when it is known and its device is there; ErrNotFound if the node does
	// not have it. A volume that is there and cannot be used has a Problem.
	Get(ctx context.Context, id string) (Volume, error)

	// Expand makes a volume at least Size large and returns it.
	Expand(ctx context.Context, r ExpandRequest) (Volume, error)

	// Format makes the filesystem on a volume whose record says blank, then
	// changes the record. Of a volume that is a filesystem by itself, and for Raw, it makes
	// nothing, and records that it may hold data now. It returns at once for a volume recorded
	// with the same filesystem; another one is ErrConflict. A crash between the two steps
	// leaves the record blank, which is true as far as anyone's data is concerned: nothing
	// was mounted yet.
	Format(ctx context.Context, r FormatRequest) (Volume, error)

	// Delete removes a volume; one that is gone is no error. The volume is gone when it
	// returns, its space is free once it is wiped as Create was told. An open device is
	// ErrInUse. A volume that was seen in a pool which is now missing is
	// ErrPoolMissing: its data may come back. A provisioner that has never seen the pool
	// cannot know of the volume, so a caller that knows the pool's name looks for it in
	// Report before it believes that the volume is gone.
	Delete(ctx context.Context, id string) error
}
