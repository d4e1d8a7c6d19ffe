package owner

import (
	"context"
	"time"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// Pools are the effects of an Owner of copies on its own node's copies, and on those of others. All but Make,
// Destroy and Fetch are as in provision.Replicator.
type Pools interface {
	// 18. State returns what the node keeps of a copy. ErrNotFound says that the volume is not here, and that no
	// pool that may have it is away.
	State(ctx context.Context, id string) (provision.Replica, error)
	// 19. Mark changes the record beside the data. 20. Snapshot keeps the head as a point.
	Mark(ctx context.Context, id string, m provision.Mark) error
	Snapshot(ctx context.Context, r provision.PointRequest) error
	// 21. Preserve makes a branch of the newest point. 22. RollBack makes an older point the newest. 23. Drop
	// removes points.
	Preserve(ctx context.Context, id string, common lineage.Point) error
	RollBack(ctx context.Context, id string, to lineage.Point) error
	Drop(ctx context.Context, id string, points []lineage.Point) error
	// 24. Hold keeps a point for another node.
	Hold(ctx context.Context, id string, h ownership.Hold) error
	// 25. Abort removes what was received half. 26. Writable makes the head one that can be mounted.
	Abort(ctx context.Context, id string) error
	Writable(ctx context.Context, id string) (provision.Volume, error)
	// 27. Make makes the copy, or what is there, so many bytes large, and its filesystem with it if it is mounted.
	Make(ctx context.Context, v *v1alpha1.Volume, size int64) error
	// 28. Destroy deletes the copy with all its points and branches.
	Destroy(ctx context.Context, id string) error

	// 29. Fetch asks another node for a stream and applies it, which may take hours. It holds no lock.
	Fetch(ctx context.Context, f Fetch) error
}

// Fetch is a stream that a node asks for.
type Fetch struct {
	Volume string
	// From is the node that is asked.
	From string
	// Epoch is the promise of this node's copy: a sender in a rival epoch is refused.
	Epoch lineage.Epoch
	// To is the point that is asked for, as the difference to Base; a zero Base is the whole.
	Base, To lineage.Point
	// Awaited: a pod on this node waits for the volume.
	Awaited bool
}

const (
	// spare is how many points beyond the necessary a copy keeps.
	spare = 1
	// unroomy is for how long no copy is made larger after there was no room.
	unroomy = time.Minute
	// A copy that waits, or has settled, is tended again after this long: peers come and go without a word.
	waits   = 30 * time.Second
	settled = 5 * time.Minute
	// unknownAge is the age of a point of which no one knows when it was made: a person decides about it.
	unknownAge = 100 * 365 * 24 * time.Hour
)
