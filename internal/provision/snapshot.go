package provision

import (
	"context"
	"fmt"
	"regexp"
	"time"
)

// Snapshot is a provisioner's record of what a volume held at one moment. It does
// not depend on the volume, which may be gone.
type Snapshot struct {
	// ID is the CSI snapshot id.
	ID string
	// Volume that it was taken of.
	Volume string
	// Pool that holds it: the volume's.
	Pool PoolRef
	// Size of the volume in bytes when it was taken: what is made from it is as
	// large, or larger.
	Size int64
	// Allocated bytes of the pool.
	Allocated int64
	// Filesystem that was on the volume, or Raw; empty means that it was blank.
	Filesystem string
	// Taken is when, in whole seconds and UTC by the node's clock: for people, never
	// to decide by.
	Taken time.Time
	// Copying is set while its data is still being copied: what it holds is fixed,
	// and nothing can be made from it yet.
	Copying bool
	// Problem is empty, or says why nothing can be made from it.
	Problem string
}

// Source is what a volume begins as: a copy of a snapshot or of another volume. At
// most one is named; a volume of none begins blank.
type Source struct {
	Snapshot, Volume string
}

// SnapshotRequest asks for a snapshot.
type SnapshotRequest struct {
	ID, Volume string
	// Limits of the pool's use.
	Limits Limits
}

// Snapshotter is what a provisioner with snapshots can do besides. All methods may
// be called concurrently; errors are of this package's classes.
type Snapshotter interface {
	// Snapshot records what a volume holds at some moment between the call and its
	// return, mounted or not. One that exists of the same volume is returned; of
	// another volume it is ErrConflict. A volume that is not here is ErrNotFound, and no
	// room ErrNoSpace.
	Snapshot(ctx context.Context, r SnapshotRequest) (Snapshot, error)

	// GetSnapshot returns a snapshot; ErrNotFound if the node does not have it.
	GetSnapshot(ctx context.Context, id string) (Snapshot, error)

	// DeleteSnapshot removes a snapshot; one that is gone is no error. Volumes made
	// from it do not need it, except while they are still copied: ErrInUse. With a
	// missing pool it fails as Delete does.
	DeleteSnapshot(ctx context.Context, id string) error
}

// Full is everything that the provisioners of a node can do. What a pool's own
// provisioner cannot is ErrUnsupported.
type Full interface {
	Provisioner
	Snapshotter
}

// Copies says whether pools of a type have snapshots, and volumes made from them.
func Copies(provisioner string) bool { return kinds[provisioner] != nil && provisioner != Device }

// Ids of snapshots look like those of volumes, and none is both.
var snapshotID = regexp.MustCompile(`^snap-[a-z0-9]([a-z0-9-]{0,57}[a-z0-9])?$`)

// CheckSnapshotID returns ErrInvalid for what cannot be the id of a snapshot.
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

// Fits returns ErrInvalid for a volume that cannot begin as a copy of so many bytes
// in that pool.
func (r CreateRequest) Fits(pool PoolRef, size int64) error {
	switch {
	case r.Pool != pool:
		return fmt.Errorf("%w: volume %s cannot be in pool %s: its source is in pool %s", ErrInvalid, r.ID, r.Pool.Name, pool.Name)
	case r.Size < size:
		return fmt.Errorf("%w: volume %s of %d bytes cannot hold its source of %d", ErrInvalid, r.ID, r.Size, size)
	}
	return nil
}
