package provision

import (
	"context"
	"fmt"
	"regexp"
	"time"
)

// Snapshot is a provisioner's record of a volume's data at one moment. It does not depend
// on the volume, which may be gone.
type Snapshot struct {
	// ID is the CSI snapshot id.
	ID string
	// Volume that it was taken of.
	Volume string
	// Pool that holds it: the volume's.
	Pool PoolRef
	// Size of the volume in bytes when it was taken. A volume made from the snapshot is as
	// large, or larger.
	Size int64
	// Allocated bytes of the pool.
	Allocated int64
	// Filesystem that was on the volume, or Raw; empty means that it was blank.
	Filesystem string
	// Taken is its time by the node's clock, in whole seconds and UTC. It is for people;
	// Berth never decides by it.
	Taken time.Time
	// Copying is set while its data is still being copied. Its content is fixed already,
	// but no volume can be made from it yet.
	Copying bool
	// Problem is empty, or says why no volume can be made from it.
	Problem string
}

// Source names the snapshot or the volume that a new volume is a copy of. At most one is
// set; a volume without a source begins blank.
type Source struct {
	Snapshot, Volume string
}

// SnapshotRequest asks for a snapshot.
type SnapshotRequest struct {
	ID, Volume string
	// Limits of the pool's use.
	Limits Limits
}

// Snapshotter is implemented by provisioners that have snapshots. All methods may be
// called concurrently; errors are of this package's classes.
type Snapshotter interface {
	// Snapshot keeps a volume's data as of some moment between the call and its return,
	// whether the volume is mounted or not. It returns a snapshot of that id that exists;
	// if that is of another volume, the error is ErrConflict. A volume that is not here is
	// ErrNotFound, and no room is ErrNoSpace.
	Snapshot(ctx context.Context, r SnapshotRequest) (Snapshot, error)

	// GetSnapshot returns a snapshot; ErrNotFound if the node does not have it.
	GetSnapshot(ctx context.Context, id string) (Snapshot, error)

	// DeleteSnapshot removes a snapshot; one that is gone is no error. Volumes made from
	// it do not need it once they are copied; until then the error is ErrInUse. With a
	// missing pool it fails as Delete does.
	DeleteSnapshot(ctx context.Context, id string) error
}

// Full has all methods of the provisioners of a node. A call that a pool's provisioner
// does not implement is ErrUnsupported.
type Full interface {
	Provisioner
	Snapshotter
}

// Ids of snapshots have the form of volume ids, but another prefix: no id is both.
var snapshotID = regexp.MustCompile(`^snap-[a-z0-9]([a-z0-9-]{0,57}[a-z0-9])?$`)

// CheckSnapshotID returns ErrInvalid for a string that cannot be the id of a snapshot.
func CheckSnapshotID(id string) error {
	if !snapshotID.MatchString(id) {
		return fmt.Errorf("%w: %q is no snapshot id", ErrInvalid, id)
	}
	return nil
}

// Check returns ErrInvalid for a request that can never be met.
func (r SnapshotRequest) Check() error {
	if err := CheckSnapshotID(r.ID); err != nil {
		return err
	}
	if err := CheckID(r.Volume); err != nil {
		return err
	}
	return r.Limits.check()
}

func (s Source) check() error {
	switch {
	case s.Snapshot != "" && s.Volume != "":
		return fmt.Errorf("%w: a volume has one source, not snapshot %q and volume %q", ErrInvalid, s.Snapshot, s.Volume)
	case s.Snapshot != "":
		return CheckSnapshotID(s.Snapshot)
	case s.Volume != "":
		return CheckID(s.Volume)
	}
	return nil
}

// Fits returns ErrInvalid if the requested volume cannot be a copy of a source of size
// bytes in that pool.
func (r CreateRequest) Fits(pool PoolRef, size int64) error {
	switch {
	case r.Pool != pool:
		return fmt.Errorf("%w: volume %s cannot be in pool %s: its source is in pool %s", ErrInvalid, r.ID, r.Pool.Name, pool.Name)
	case r.Size < size:
		return fmt.Errorf("%w: volume %s of %d bytes cannot hold its source of %d", ErrInvalid, r.ID, r.Size, size)
	}
	return nil
}
