package snapshot

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// Record implements worker.Access.
func (w *Worker) Record(ctx context.Context, id string) (provision.Snapshot, error) {
	return w.Provisioner.GetSnapshot(ctx, id)
}

// Make implements worker.Access: it takes the snapshot. It holds the lock of the volume, so that the
// volume can be neither deleted nor expanded meanwhile.
func (w *Worker) Make(ctx context.Context, s *v1alpha1.Snapshot, _ decide.Verb, _ *provision.Snapshot) (*provision.Snapshot, error) {
	class, err := worker.Class(ctx, w.Class, s.Spec.PoolClass)
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
	if err := w.served(bounded, s); err != nil {
		return nil, err
	}
	if err := w.check(bounded, s, class); err != nil {
		return nil, w.worded(ctx, s, err)
	}
	taken, err := w.Provisioner.Snapshot(bounded, provision.SnapshotRequest{ID: s.Name, Volume: s.Spec.Volume, Limits: poolclass.Limits(class)})
	if err != nil {
		return nil, w.worded(ctx, s, err)
	}
	return &taken, nil
}

// served refuses the volume of another driver: only that driver knows who writes to it. A volume
// without an object is no other driver's as far as anyone can tell. It also refuses a volume with copies on several
// nodes: the head of a copy may be behind, or hold writes that are no part of the volume.
func (w *Worker) served(ctx context.Context, s *v1alpha1.Snapshot) error {
	v, err := w.Volume(ctx, s.Spec.Volume)
	switch {
	case err == nil && v.Spec.Replication.Kind != "":
		return fmt.Errorf("%w: volume %s has copies on several nodes, of which no snapshots can be taken yet", provision.ErrInvalid, s.Spec.Volume)
	case errors.Is(err, driver.ErrForeign):
		return fmt.Errorf("%w: %w", provision.ErrInvalid, err)
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading volume %s before a snapshot of it: %w", s.Spec.Volume, err)
	}
	return nil
}

// check returns an error if the volume is not as the snapshot says. A user who may write
// Snapshots must not reach pools that no administrator gave to the class.
func (w *Worker) check(ctx context.Context, s *v1alpha1.Snapshot, c *v1alpha1.PoolClass) error {
	volume, err := w.Provisioner.Get(ctx, s.Spec.Volume)
	wish := s.Wish(w.Node)
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
	v, readErr := w.Volume(ctx, s.Spec.Volume)
	switch {
	case apierrors.IsNotFound(readErr):
		return fmt.Errorf("%w: volume %s does not exist any more", provision.ErrInvalid, s.Spec.Volume)
	case readErr != nil:
		return fmt.Errorf("reading volume %s, which the node does not have: %w", s.Spec.Volume, readErr)
	case !v.DeletionTimestamp.IsZero() || v.Wish(w.Node) == nil:
		return fmt.Errorf("%w: volume %s is no longer on this node", provision.ErrInvalid, s.Spec.Volume)
	}
	return fmt.Errorf("%w: %w", entries.ErrNoSource, err)
}

// Delete implements worker.Access.
func (w *Worker) Delete(ctx context.Context, record *provision.Snapshot) error {
	return w.Provisioner.DeleteSnapshot(ctx, record.ID)
}
