package replica

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/decide/replica"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// Record implements worker.Access.
func (w *Worker) Record(ctx context.Context, id string) (provision.Volume, error) {
	return w.Provisioner.Get(ctx, id)
}

// Make implements worker.Access: it creates or expands the replica.
func (w *Worker) Make(ctx context.Context, v *v1alpha1.Volume, verb decide.Verb, record *provision.Volume) (*provision.Volume, error) {
	class, err := worker.Class(ctx, w.Class, v.Spec.PoolClass)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, worker.StepTimeout)
	defer cancel()
	var next provision.Volume
	if verb == decide.Create {
		next, err = w.create(ctx, v, class)
	} else {
		next, err = w.Provisioner.Expand(ctx, provision.ExpandRequest{ID: record.ID, Size: v.Spec.Capacity.Value(), Limits: poolclass.Limits(class)})
	}
	if err != nil {
		return nil, err
	}
	return &next, nil
}

func (w *Worker) create(ctx context.Context, v *v1alpha1.Volume, c *v1alpha1.PoolClass) (provision.Volume, error) {
	r, err := Request(v, c, w.Node, w.Pool)
	if err != nil {
		return provision.Volume{}, err
	}
	r.Source = replica.SourceOf(v)
	if err := w.served(ctx, r.Source); err != nil {
		return provision.Volume{}, err
	}
	next, err := w.Provisioner.Create(ctx, r)
	if errors.Is(err, provision.ErrNotFound) && r.Source != (provision.Source{}) {
		return next, fmt.Errorf("%w: %w", entries.ErrNoSource, err)
	}
	return next, err
}

// Request is what a provisioner is asked for to make the replica of a volume on a node, without a source. It
// refuses a pool that the class does not select: a user who may write Volumes must not reach pools that no
// administrator gave to the class.
func Request(v *v1alpha1.Volume, c *v1alpha1.PoolClass, node string, reported func(ref provision.PoolRef) provision.Pool) (provision.CreateRequest, error) {
	wish := v.Wish(node)
	if wish == nil {
		return provision.CreateRequest{}, fmt.Errorf("%w: Volume %s names no pool of node %s (spec.replicas)", entries.ErrWrongPool, v.Name, node)
	}
	pool := provision.PoolRef{Type: string(c.Spec.Provisioner), Name: wish.Pool}
	if !poolclass.Names(c, reported(pool)) {
		return provision.CreateRequest{}, fmt.Errorf("%w: PoolClass %s does not select pool %s", entries.ErrWrongPool, c.Name, wish.Pool)
	}
	r := poolclass.Request(c, pool)
	r.ID, r.Size, r.Labels, r.Tree = v.Name, v.Spec.Capacity.Value(), labelsOf(v), provision.ByItself(string(v.Spec.FSType))
	return r, nil
}

// served refuses a source of another driver: only that driver knows which of its data counts. A
// source without an object is no other driver's as far as anyone can tell.
func (w *Worker) served(ctx context.Context, source provision.Source) error {
	var err error
	switch {
	case source.Snapshot != "":
		_, err = w.Snapshot(ctx, source.Snapshot)
	case source.Volume != "":
		var v *v1alpha1.Volume
		if v, err = w.Live(ctx, source.Volume); err == nil && v.Spec.Replication.Kind != "" {
			return fmt.Errorf("%w: volume %s has copies on several nodes, and a copy of one of them may not be what the volume holds", provision.ErrInvalid, source.Volume)
		}
	}
	switch {
	case errors.Is(err, driver.ErrForeign):
		return fmt.Errorf("%w: %w", provision.ErrInvalid, err)
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading the source of the copy, %s%s: %w", source.Snapshot, source.Volume, err)
	}
	return nil
}

// Delete implements worker.Access: it deletes a volume that no pod can see. The provisioner refuses
// an open device; a raw block device that is bound into a pod need not be open.
func (w *Worker) Delete(ctx context.Context, record *provision.Volume) error {
	paths, err := w.Mounts(*record)
	switch {
	case errors.Is(err, provision.ErrNotFound): // no device, no mount
	case err != nil:
		return fmt.Errorf("looking for mounts of the volume: %w", err)
	case len(paths) > 0:
		return fmt.Errorf("%w: it is mounted at %s", provision.ErrInUse, paths[0])
	}
	return w.Provisioner.Delete(ctx, record.ID)
}

// labelsOf returns labels for people who list logical volumes.
func labelsOf(v *v1alpha1.Volume) map[string]string {
	if v.Spec.ClaimRef == nil {
		return nil
	}
	return map[string]string{provision.LabelNamespace: v.Spec.ClaimRef.Namespace, provision.LabelClaim: v.Spec.ClaimRef.Name}
}
