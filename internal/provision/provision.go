package provision

import "context"

// PoolRef names a pool of this node.
type PoolRef struct {
	// Type of the provisioner that serves it, as in PoolClass: "LVM".
	Type string
	// Name on this node: a volume group's name.
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
	// Device is the path of its block device.
	Device string
	// Filesystem that was made on it; empty means blank: never formatted.
	Filesystem string
	// Problem is empty, or says why the volume cannot be used.
	Problem string
	// Inline is whose inline volume it is; zero for a volume that has a Volume
	// object. It is recorded together with the volume and never changes.
	Inline Inline
}

// Inline names the owner of an inline volume, which lives and dies with a pod.
type Inline struct {
	// PodUID of the pod, and Name of the volume in the pod's spec.
	PodUID, Name string
}

// Pool is one pool and what is in it, from one atomic report.
type Pool struct {
	PoolRef
	// Total, Foreign and Free bytes. Foreign is what others than Berth use;
	// Total - Foreign - the sum of Volumes is Free, up to metadata overhead,
	// which counts as foreign.
	Total, Foreign, Free int64
	// Unit is the allocation unit in bytes: sizes are rounded up to it.
	Unit int64
	// Problem is empty, or says why nothing new may be placed in the pool.
	Problem string
	// Volumes of Berth in this pool.
	Volumes []Volume
}

// CreateRequest asks for a volume.
type CreateRequest struct {
	ID   string
	Pool PoolRef
	// Size in bytes, at least.
	Size int64
	// Spare must stay free in the pool.
	Spare Spare
	// Labels are kept with the volume for people to read: claim and namespace.
	Labels map[string]string
	// Inline is whose inline volume it is; zero for any other.
	Inline Inline
}

// ExpandRequest asks for a larger volume.
type ExpandRequest struct {
	ID string
	// Size in bytes, at least. A smaller size than the present one is met already.
	Size int64
	// Spare must stay free in the pool.
	Spare Spare
}

// FormatRequest asks for a filesystem on a blank volume.
type FormatRequest struct {
	ID         string
	Filesystem string
}

// Provisioner carves volumes out of the pools of one node. All methods may be
// called concurrently; calls for different volumes do not wait for each other
// longer than the pool itself demands. Errors are of this package's classes.
type Provisioner interface {
	// Report returns every pool on the node with Berth's volumes in it.
	Report(ctx context.Context) ([]Pool, error)

	// Changed signals that a pool may have changed by other hands or by this
	// provisioner; receivers call Report. It never blocks the sender.
	Changed() <-chan struct{}

	// Create makes a volume. If it exists with a size that Size rounds to, and for
	// the same owner, it is returned; else the error is ErrConflict. No room is
	// ErrNoSpace, a pool that is not there ErrPoolMissing.
	Create(ctx context.Context, r CreateRequest) (Volume, error)

	// Get returns a volume from the provisioner's state without starting a
	// process when it is known and its device is there; ErrNotFound if the node does
	// not have it. A volume that is there and cannot be used has a Problem.
	Get(ctx context.Context, id string) (Volume, error)

	// Expand makes a volume at least Size large and returns it.
	Expand(ctx context.Context, r ExpandRequest) (Volume, error)

	// Format makes the filesystem on a volume whose record says blank, then
	// changes the record. It returns at once for a volume recorded with the same
	// filesystem; another one is ErrConflict. A crash between the two steps leaves the
	// record blank, which is true as far as anyone's data is concerned: nothing
	// was mounted yet.
	Format(ctx context.Context, r FormatRequest) (Volume, error)

	// Delete removes a volume; one that is gone is no error. An open device is
	// ErrInUse. A volume that was seen in a pool which is now missing is
	// ErrPoolMissing: its data may come back. A provisioner that has never seen the pool
	// cannot know of the volume, so a caller that knows the pool's name looks for it in
	// Report before it believes that the volume is gone.
	Delete(ctx context.Context, id string) error
}
