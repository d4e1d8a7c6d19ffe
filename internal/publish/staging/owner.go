package staging

import (
	"context"
	"fmt"
)

// Owner decides whether this node may use a volume now: whether the copy here is the one that
// counts, and no other node writes. It encloses all that the service does between the first look
// at a volume and its last unmount. All calls are idempotent, and a call after a crash goes on
// where the earlier one ended.
//
// The service calls an Owner without the lock of the replica worker. The Owner takes that lock for
// each of its own steps and for the step that the service hands it, so that no other step comes
// between the last check and the mount, or the bind. All calls but Fetch and Prepare come one at a
// time for a volume.
type Owner interface {
	// Prepare calls step, which makes a filesystem on a volume that is blank, if that may come
	// before any node takes the volume. Otherwise it does nothing: use does the same.
	Prepare(ctx context.Context, id string, step func(ctx context.Context) error) error
	// Fetch brings the data that a volume lacks on this node, and may take long. Other calls for
	// the volume come meanwhile: a pod may be ended. That Fetch has ended is no promise to Take.
	Fetch(ctx context.Context, id string) error
	// Take makes the node the user of a volume, and calls use while it is: use looks at the
	// device for the first time, and mounts. A raw block volume is looked at only, and its
	// device is given to pods afterwards. The errors of Take and of use reach the kubelet. If
	// the node lacks data, or another node has the volume, Take fails at once. The error is then an Awaited if it
	// helps to ask again.
	Take(ctx context.Context, id string, use func(ctx context.Context) error) error
	// Holds calls use if the node has taken the volume and not given it since: the check and the use are
	// one step. use may give the volume to a pod at target, which is empty if it does not. Holds asks
	// nothing beyond the node, unless a pod lost the volume there: pods start and stop while the API
	// server is away.
	Holds(ctx context.Context, id, target string, use func(ctx context.Context) error) error
	// Give takes a volume off the node, and then gives it up, unless it is mounted still.
	Give(ctx context.Context, id string, off Off) error
}

// Awaited is what an error of Take also is if Take may succeed soon.
type Awaited interface {
	error
	// Changed is closed after the next change that is known, since Take began; nil if it does not help to wait.
	Changed() <-chan struct{}
}

// Off is how a volume comes off the node.
type Off struct {
	// Unmount takes the volume off the path of the call. It needs no record of the volume.
	Unmount func(ctx context.Context) error
	// Left returns the paths where the volume still is: a pod may have it. An error means
	// that they are not known, which is no proof that there are none.
	Left func(ctx context.Context) ([]string, error)
}

// OneCopy is the Owner of volumes that have one copy, on this node. No other node could use
// them, so there is nothing to take or to give: it neither keeps nor asks anything.
type OneCopy struct{ Locks Locks }

var _ Owner = OneCopy{}

// Prepare implements Owner.
func (o OneCopy) Prepare(ctx context.Context, id string, step func(ctx context.Context) error) error {
	return alone(ctx, o.Locks, id, step)
}

// Fetch implements Owner.
func (OneCopy) Fetch(context.Context, string) error { return nil }

// Take implements Owner.
func (o OneCopy) Take(ctx context.Context, id string, use func(ctx context.Context) error) error {
	return alone(ctx, o.Locks, id, use)
}

// Holds implements Owner. The volume must not be deleted between the look at it and the bind: the device of
// a raw block volume is not open then, so that nothing else would refuse it. A use that gives the volume to no
// pod is of a mounted filesystem, which is not deleted. It may take long, and holds no lock meanwhile.
func (o OneCopy) Holds(ctx context.Context, id, target string, use func(ctx context.Context) error) error {
	if target == "" {
		return use(ctx)
	}
	return alone(ctx, o.Locks, id, use)
}

// Give implements Owner. It does not ask what is left: a volume whose device is lost must come
// off as well.
func (o OneCopy) Give(ctx context.Context, id string, off Off) error {
	return alone(ctx, o.Locks, id, off.Unmount)
}

// alone takes a step that must not meet the replica worker.
func alone(ctx context.Context, locks Locks, id string, step func(ctx context.Context) error) error {
	unlock, err := locks.Lock(ctx, id)
	if err != nil {
		return fmt.Errorf("waiting for another operation on volume %s: %w", id, err)
	}
	defer unlock()
	return step(ctx)
}
