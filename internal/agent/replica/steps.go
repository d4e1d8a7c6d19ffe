package replica

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/decide/replica"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// what names the kind of data of this package.
const what = "volume"

// record returns the provisioner's record of a volume, nil when the provisioner
// says that there is none.
func (w *Worker) record(ctx context.Context, id string) (*provision.Volume, error) {
	ctx, cancel := context.WithTimeout(ctx, worker.StepTimeout)
	defer cancel()
	got, err := w.Provisioner.Get(ctx, id)
	switch {
	case errors.Is(err, provision.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking up the volume's record: %w", err)
	}
	return &got, nil
}

// carve creates or expands the replica.
func (w *Worker) carve(ctx context.Context, v *v1alpha1.Volume, step decide.Verb, record *provision.Volume) (*provision.Volume, error) {
	poolClass, err := worker.Class(ctx, w.Objects.Class, v.Spec.PoolClass)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, worker.StepTimeout)
	defer cancel()
	var next provision.Volume
	if step == decide.Create {
		next, err = w.create(ctx, v, poolClass)
	} else {
		next, err = w.Provisioner.Expand(ctx, provision.ExpandRequest{ID: record.ID, Size: v.Spec.Capacity.Value(), Limits: poolclass.Limits(poolClass)})
	}
	if err != nil {
		return nil, err
	}
	return &next, nil
}

func (w *Worker) create(ctx context.Context, v *v1alpha1.Volume, c *v1alpha1.PoolClass) (provision.Volume, error) {
	wish := placed.Wish(v.Spec.Replicas, w.Node)
	pool := provision.PoolRef{Type: string(c.Spec.Provisioner), Name: wish.Pool}
	if !poolclass.Names(c, w.Pool(pool)) {
		// A user who may write Volumes must not reach pools that no administrator
		// gave to the class.
		return provision.Volume{}, fmt.Errorf("%w: PoolClass %s does not select pool %s", entries.ErrWrongPool, c.Name, wish.Pool)
	}
	source := replica.SourceOf(v)
	r := poolclass.Request(c, pool)
	r.ID, r.Size, r.Labels, r.Source = v.Name, v.Spec.Capacity.Value(), labelsOf(v), source
	r.Tree = provision.ByItself(string(v.Spec.FSType))
	next, err := w.Provisioner.Create(ctx, r)
	if errors.Is(err, provision.ErrNotFound) && source != (provision.Source{}) {
		return next, fmt.Errorf("%w: %w", entries.ErrNoSource, err)
	}
	return next, err
}

// removeIfLive removes data that no Volume accounts for, if the Volume, read from the API server,
// says so. Else it keeps the data.
func (w *Worker) removeIfLive(ctx context.Context, record *provision.Volume, watched bool) (reconcile.Result, error) {
	var live *v1alpha1.Volume
	return w.Settle(ctx, worker.Unaccounted{
		Record: orphan.Record{Name: record.ID, Pool: record.Pool.Name, Size: record.Size},
		What:   what, Watched: watched,
		Lost: fmt.Sprintf("volume %s on node %s has no Volume object: the data is kept; adopt it, forget it, or restore the object", record.ID, w.Node),
		Read: func(ctx context.Context) (err error) {
			live, err = w.Objects.Live(ctx, record.ID)
			return err
		},
		Decide: func() (remove bool, keep string) {
			d := replica.Decide(live, w.Node, replica.Facts{Record: record, Made: w.made(live)})
			if d.Verb == decide.Keep {
				keep = d.Message
			}
			return d.Verb == decide.Remove, keep
		},
		Delete: func(ctx context.Context) error { return w.delete(ctx, record) },
		Deleted: func(ctx context.Context, err error) (reconcile.Result, error) {
			if errors.Is(err, provision.ErrPoolMissing) {
				if waived, wordErr := w.waived(ctx, live, record.Pool.Name); waived || wordErr != nil {
					err = wordErr
				}
			}
			if err != nil {
				return w.refuse(ctx, live, decide.Remove, record, err)
			}
			return w.report(ctx, live, replica.Decide(live, w.Node, replica.Facts{}))
		},
	})
}

// lost says whether the missing record of data that should go proves nothing: the entry has
// the data in a pool that the node does not report, and it was not waived.
func (w *Worker) lost(ctx context.Context, v *v1alpha1.Volume) (bool, error) {
	entry := v.Entry(w.Node)
	if !entry.HasData() || placed.Wish(v.Spec.Replicas, w.Node) != nil && v.DeletionTimestamp.IsZero() {
		return false, nil
	}
	reported, err := w.Reported(entry.Pool)
	if reported || err != nil {
		return false, err
	}
	waived, err := w.waived(ctx, v, entry.Pool)
	return !waived, err
}

// waived says whether an administrator has given up data that is lost with its pool.
func (w *Worker) waived(ctx context.Context, v *v1alpha1.Volume, pool string) (bool, error) {
	if v.DeletionTimestamp.IsZero() {
		return false, nil
	}
	return w.Waived(ctx, orphan.Lost{Name: v.Name, Pool: pool, Deleted: *v.DeletionTimestamp})
}

// delete deletes a volume that no pod can see. The provisioner refuses an open device;
// a raw block device that is bound into a pod need not be open.
func (w *Worker) delete(ctx context.Context, record *provision.Volume) error {
	paths, err := w.Mounts(*record)
	switch {
	case errors.Is(err, provision.ErrNotFound): // no device, no mount
	case err != nil:
		return fmt.Errorf("looking for mounts of the volume: %w", err)
	case len(paths) > 0:
		return fmt.Errorf("%w: it is mounted at %s", provision.ErrInUse, paths[0])
	}
	ctx, cancel := context.WithTimeout(ctx, worker.StepTimeout)
	defer cancel()
	if err := w.Provisioner.Delete(ctx, record.ID); err != nil {
		return err
	}
	w.Deleted(record.ID)
	return nil
}

// unwatched handles a volume that the watch does not show: it was deleted, or
// lost this node's label, or is data of which only the pool knows.
func (w *Worker) unwatched(ctx context.Context, name string) (reconcile.Result, error) {
	if !w.Listed(name) {
		// If a report under way still shows it, the sweep comes back to it.
		w.Orphans.Forget(name)
		w.begun.Delete(name)
		return reconcile.Result{}, nil
	}
	record, err := w.record(ctx, name)
	if err != nil || record == nil {
		return reconcile.Result{}, err
	}
	return w.removeIfLive(ctx, record, false)
}

// labelsOf returns labels for people who list logical volumes.
func labelsOf(v *v1alpha1.Volume) map[string]string {
	if v.Spec.ClaimRef == nil {
		return nil
	}
	return map[string]string{"namespace": v.Spec.ClaimRef.Namespace, "claim": v.Spec.ClaimRef.Name}
}
