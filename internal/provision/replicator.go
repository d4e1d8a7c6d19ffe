package provision

import (
	"context"
	"fmt"
	"os"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
)

// Replicating is implemented by provisioners whose volumes can have copies on several nodes.
type Replicating interface {
	// Replicator returns the part of the provisioner that keeps and moves these copies. It is a value
	// of its own because Snapshotter already has a method Snapshot.
	Replicator() Replicator
}

// Replicators is implemented by what serves pools of several types. Each type has a Replicator of its own:
// pools of one cannot receive the streams of another.
type Replicators interface {
	// ReplicatorOf returns the Replicator of the pools of a type, or ErrUnsupported if the volumes in them
	// cannot have copies on several nodes.
	ReplicatorOf(ctx context.Context, poolType string) (Replicator, error)
}

// ReplicatorOf returns the Replicator of the pools of a type that p serves: see Replicators.
func ReplicatorOf(ctx context.Context, p any, poolType string) (Replicator, error) {
	switch able := p.(type) {
	case Replicators:
		return able.ReplicatorOf(ctx, poolType)
	case Replicating:
		return able.Replicator(), nil
	}
	return nil, fmt.Errorf("%w: volumes in pools of type %q have no copies on other nodes", ErrUnsupported, poolType)
}

// Replicator keeps one node's copies of replicated volumes, and moves their data between nodes as
// streams. The volume itself is made, expanded and deleted by Provisioner; Delete removes the copy
// with all its points and branches.
//
// A copy is points, a record and a head. A point is an immutable snapshot with a name that all nodes
// agree on. The record is ownership.Copy beside the data: what the node promised, and which points
// count. The head is what pods mount; it can be written only after Writable. What the record does not
// name is left over from a change that a crash ended, and is removed.
//
// Every method but Send and Receive makes one change of the record. The change is on the disk when
// the method returns, it is there wholly or not at all after a crash, and the method may be called
// again. The caller holds the lock of the volume from the moment it reads State until the change
// returned: a Replicator does not decide who may write, but refuses what would lose data.
//
// All methods may be called concurrently; errors are of this package's classes. A volume that is not
// here is ErrNotFound.
type Replicator interface {
	// Abilities says what streams of this backend can do.
	Abilities() Abilities

	// State returns what the node keeps of a copy. A volume that was never marked, snapshotted or
	// received has a Copy that does not exist. To know whether a head that can be written is dirty,
	// State may have to write out what the kernel still has in memory.
	State(ctx context.Context, id string) (Replica, error)

	// Mark makes parts of the record durable: see Mark. A volume that was none becomes a copy: it cannot
	// be mounted from then on, unless it is open for writing. ErrConflict if Opened or Closed would fall.
	Mark(ctx context.Context, id string, m Mark) error

	// Snapshot keeps the head as a new point, the newest one. A point that exists already is kept as
	// it is. ErrConflict if the point is not newer than the newest one, the head does not count, or the
	// volume is no copy;
	// ErrNoSpace if there is no room for all of the head to be overwritten afterwards.
	Snapshot(ctx context.Context, r PointRequest) error

	// Send writes a stream of a point into a pipe: see SendRequest. It does not close the pipe. It
	// ends with an error if the other end of the pipe is closed. If ctx ends before that, Send returns,
	// but the backend may write until the other end is closed. While a stream is under way, the node
	// drops neither its target nor its base.
	//
	// The pipe is a file and not an io.Writer: the kernel of btrfs and the program of ZFS write into
	// a descriptor, and a descriptor can be handed to another process. Nothing copies the bytes then.
	Send(ctx context.Context, r SendRequest, pipe *os.File) error

	// Receive applies the stream that a header describes, read from a pipe until its end. Before the
	// first byte it refuses, with ErrConflict, whatever ownership.Receive refuses, a stream of another
	// format, a volume that is smaller than the sender's, and a volume that holds data and is no copy.
	// It asks again when all bytes are there. Then the point, the removal of older points by a full
	// stream, and the header's promise, if the copy's own is not newer, become durable in one step. Until
	// that step the copy is as it was.
	//
	// The volume exists: Create made it, so its room is charged. A stream that ends too early or is
	// damaged is ErrInvalid, and changes nothing. What was received of it stays, as State tells, if it
	// can be resumed. Receive ends when ctx does, if the pipe can have a deadline, and else when its
	// other end is closed. The caller has made sure that the peer may send this volume, in this epoch and
	// with these snapshots. Otherwise the peer is not trusted: whatever the bytes are, nothing outside the volume is
	// read or changed, and the volume takes no more room than its size allows.
	Receive(ctx context.Context, h StreamHeader, pipe *os.File) error

	// Abort removes what was received half. ErrInUse while the stream is under way: close the other
	// end of its pipe first.
	Abort(ctx context.Context, id string) error

	// RollBack makes a point the newest one; all later points are gone unless a branch has them.
	// The head does not count any more until Writable. ErrConflict if the head is dirty or the newest
	// point is not preserved, ErrNotFound if the copy does not hold the point.
	RollBack(ctx context.Context, id string, to lineage.Point) error

	// Preserve puts the newest point aside as a branch, which begins at common, or nowhere in the
	// lineage if common is zero. The branch survives RollBack and full streams, and stays until Forget
	// or Delete. ErrConflict if the head is dirty.
	Preserve(ctx context.Context, id string, common lineage.Point) error

	// Forget removes the branch whose newest point is given. One that is gone is no error.
	Forget(ctx context.Context, id string, tip lineage.Point) error

	// Drop removes points; those that are gone are no error. ErrInUse, and nothing is removed, if one
	// is the newest, held, kept by a CSI snapshot, or part of a stream under way.
	Drop(ctx context.Context, id string, points []lineage.Point) error

	// Hold keeps a point from Drop until a deadline, or moves the deadline of such a hold. Its owner keeps holds of
	// two other points at most, the newest: see ownership.WithHold. The deadline is at most MaxHold away, so a receiver that vanishes leaves no hold for ever.
	// ErrNotFound if the copy does not hold the point, ErrInvalid for any other deadline, and ErrNoSpace
	// if there are MaxHolds already.
	Hold(ctx context.Context, id string, h ownership.Hold) error

	// Release ends a hold, or the keep of a CSI snapshot, whose id is the owner then. One that is gone
	// is no error.
	Release(ctx context.Context, id, owner string, p lineage.Point) error

	// Writable makes the head what follows the newest point, and returns the volume, which can be
	// mounted then. A head that counts is left as it is. ErrConflict unless the record says that the
	// copy is opened in the epoch that it promised, and has not given that up.
	Writable(ctx context.Context, id string) (Volume, error)
}
