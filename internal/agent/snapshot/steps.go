package snapshot

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/decide/snapshot"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// what names the kind of data of this package.
const what = "snapshot"

// take takes the snapshot. It holds the lock of the volume, so that the volume can be neither
// deleted nor expanded meanwhile.
func (w *Worker) take(ctx context.Context, s *v1alpha1.Snapshot) (*provision.Snapshot, error) {
	class, err := worker.Class(ctx, w.Objects.Class, s.Spec.PoolClass)
	if err != nil {
		return nil, err
	}
	unlock, err := w.Lock(ctx, s.Spec.Volume)
	if err != nil {
		return nil, fmt.Errorf("waiting for another operation on volume %s: %w", s.Spec.Volume, err)
	}
	defer unlock()
	bounded, cancel := context.WithTimeout(ctx, worker.StepTimeout)
	defer cancel()
	if err := w.check(bounded, s, class); err != nil {
		return nil, w.worded(ctx, s, err)
	}
	taken, err := w.Provisioner.Snapshot(bounded, provision.SnapshotRequest{ID: s.Name, Volume: s.Spec.Volume, Limits: poolclass.Limits(class)})
	if err != nil {
		return nil, w.worded(ctx, s, err)
	}
	return &taken, nil
}

// check returns an error if the volume is not as the snapshot says. A user who may write
// Snapshots must not reach pools that no administrator gave to the class.
func (w *Worker) check(ctx context.Context, s *v1alpha1.Snapshot, c *v1alpha1.PoolClass) error {
	volume, err := w.Provisioner.Get(ctx, s.Spec.Volume)
	wish := placed.Wish(s.Spec.Replicas, w.Node)
	switch {
	case err != nil:
		return err
	case volume.Inline != (provision.Inline{}):
		return fmt.Errorf("%w: %s is the inline volume of a pod", provision.ErrInvalid, volume.ID)
	case volume.Pool.Name != wish.Pool:
		return fmt.Errorf("%w: volume %s is in pool %s, not in %s", provision.ErrInvalid, volume.ID, volume.Pool.Name, wish.Pool)
	case !poolclass.Names(c, w.Pool(volume.Pool)):
		return fmt.Errorf("%w: PoolClass %s does not select pool %s", entries.ErrWrongPool, c.Name, wish.Pool)
	case volume.Copying:
		return fmt.Errorf("%w: the data of volume %s is still being copied", provision.ErrUnavailable, volume.ID)
	}
	return nil
}

// worded tells of a volume that is not here whether it can come back: entries.ErrNoSource if
// it can. If its object is gone or does not want it here any more, the wish can never be met:
// provision.ErrInvalid.
func (w *Worker) worded(ctx context.Context, s *v1alpha1.Snapshot, err error) error {
	if !errors.Is(err, provision.ErrNotFound) {
		return err
	}
	v, readErr := w.Objects.Volume(ctx, s.Spec.Volume)
	switch {
	case apierrors.IsNotFound(readErr):
		return fmt.Errorf("%w: volume %s does not exist any more", provision.ErrInvalid, s.Spec.Volume)
	case readErr != nil:
		return fmt.Errorf("reading volume %s, which the node does not have: %w", s.Spec.Volume, readErr)
	case !v.DeletionTimestamp.IsZero() || placed.Wish(v.Spec.Replicas, w.Node) == nil:
		return fmt.Errorf("%w: volume %s is no longer on this node", provision.ErrInvalid, s.Spec.Volume)
	}
	return fmt.Errorf("%w: %w", entries.ErrNoSource, err)
}

// removeIfLive removes a snapshot that no Snapshot object accounts for, if the object, read from
// the API server, says so. Else it keeps the snapshot.
func (w *Worker) removeIfLive(ctx context.Context, record *provision.Snapshot, watched bool) (reconcile.Result, error) {
	var live *v1alpha1.Snapshot
	return w.Settle(ctx, worker.Unaccounted{
		Record: orphan.Record{Name: record.ID, Pool: record.Pool.Name, Size: record.Size},
		What:   what, Watched: watched,
		Lost: fmt.Sprintf("snapshot %s on node %s has no Snapshot object: it is kept; adopt it, forget it, or restore the object", record.ID, w.Node),
		Read: func(ctx context.Context) (err error) {
			live, err = w.Objects.Live(ctx, record.ID)
			return err
		},
		Decide: func() (remove bool, keep string) {
			d := snapshot.Decide(live, w.Node, snapshot.Facts{Record: record})
			if d.Verb == decide.Keep {
				keep = d.Message
			}
			return d.Verb == decide.Remove, keep
		},
		Delete: func(ctx context.Context) error { return w.delete(ctx, record.ID) },
		Deleted: func(ctx context.Context, err error) (reconcile.Result, error) {
			if errors.Is(err, provision.ErrPoolMissing) {
				if waived, wordErr := w.waived(ctx, live, record.Pool.Name); waived || wordErr != nil {
					err = wordErr
				}
			}
			if err != nil {
				return w.refuse(ctx, live, decide.Remove, record, err)
			}
			return w.report(ctx, live, snapshot.Decide(live, w.Node, snapshot.Facts{}))
		},
	})
}

// lost says whether the missing record of a snapshot that should go proves nothing: the entry
// has the snapshot in a pool that the node does not report, and it was not waived.
func (w *Worker) lost(ctx context.Context, s *v1alpha1.Snapshot) (bool, error) {
	entry := s.Entry(w.Node)
	wanted := placed.Wish(s.Spec.Replicas, w.Node) != nil && s.DeletionTimestamp.IsZero()
	if wanted || entry == nil || entry.Taken == nil || entry.State == v1alpha1.SnapshotGone {
		return false, nil
	}
	reported, err := w.Reported(entry.Pool)
	if reported || err != nil {
		return false, err
	}
	waived, err := w.waived(ctx, s, entry.Pool)
	return !waived, err
}

// waived says whether an administrator has given up a snapshot that is lost with its pool.
func (w *Worker) waived(ctx context.Context, s *v1alpha1.Snapshot, pool string) (bool, error) {
	if s.DeletionTimestamp.IsZero() {
		return false, nil
	}
	return w.Waived(ctx, orphan.Lost{Name: s.Name, Pool: pool, Deleted: *s.DeletionTimestamp})
}

func (w *Worker) delete(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, worker.StepTimeout)
	defer cancel()
	if err := w.Provisioner.DeleteSnapshot(ctx, id); err != nil {
		return err
	}
	w.Deleted(id)
	return nil
}

// unwatched handles a snapshot that the watch does not show: it was deleted, or lost
// this node's label, or only the pool knows of it.
func (w *Worker) unwatched(ctx context.Context, name string) (reconcile.Result, error) {
	if !w.Listed(name) {
		// If a report under way still shows it, the sweep comes back to it.
		w.Orphans.Forget(name)
		return reconcile.Result{}, nil
	}
	record, err := w.record(ctx, name)
	if err != nil || record == nil {
		return reconcile.Result{}, err
	}
	return w.removeIfLive(ctx, record, false)
}
