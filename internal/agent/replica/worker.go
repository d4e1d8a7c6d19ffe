package replica

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/entries"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/provision"
)

const (
	// stepTimeout bounds each call of the provisioner and the wait for the volume's
	// lock, so that a hanging pool cannot hold a worker. What has begun is finished
	// by the provisioner; the next try finds its outcome.
	stepTimeout = time.Minute
	// staleDelay lets the watch catch up after a lost compare-and-swap.
	staleDelay = 20 * time.Millisecond
	// refusedDelay is how long a refused step waits when nothing changes.
	refusedDelay = time.Minute
)

// Objects is the API server as this package uses it.
type Objects interface {
	// Watched returns a volume of this node from the watch; it may be stale.
	Watched(ctx context.Context, name string) (*v1alpha1.Volume, error)
	// Live reads a volume from the API server.
	Live(ctx context.Context, name string) (*v1alpha1.Volume, error)
	// Class returns a PoolClass from the watch.
	Class(ctx context.Context, name string) (*v1alpha1.PoolClass, error)
	// Report applies this node's entry if the volume is still the one given; else
	// the error is a conflict.
	Report(ctx context.Context, v *v1alpha1.Volume, entry *v1alpha1.ReplicaStatus) error
}

// Locks are held by volume id, shared with the CSI node service.
type Locks interface {
	Lock(ctx context.Context, key string) (unlock func(), err error)
}

// Worker brings the replicas of one node to what their Volumes want.
type Worker struct {
	Node        string
	Objects     Objects
	Provisioner provision.Provisioner
	Locks       Locks
	// Format is told of a replica that is ready and still blank. It must not block.
	Format func(r provision.FormatRequest)
	// Refused is told when a step found no room. It must not block.
	Refused func()
	// Doubt is told when the provisioner did not work. It must not block.
	Doubt func()
	// Mounts are the paths where a device is mounted or bound.
	Mounts func(device string) ([]string, error)
	// Listed says whether the latest report of the pools shows a volume.
	Listed func(id string) bool
	// Pool is what the latest report says of a pool; of one that it lacks, no more
	// than the name.
	Pool func(ref provision.PoolRef) provision.Pool
	// Orphans is told of data that no Volume accounts for.
	Orphans *orphans.Set
	// Word says whether an orphan may be deleted.
	Word func(ctx context.Context, r orphans.Record) (orphans.Verdict, error)
}

var _ reconcile.Reconciler = (*Worker)(nil)

// Reconcile takes the next step for one volume.
func (w *Worker) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	unlock, err := w.lock(ctx, r.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	defer unlock()

	v, err := w.Objects.Watched(ctx, r.Name)
	if apierrors.IsNotFound(err) {
		return w.unwatched(ctx, r.Name)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	if departed(v, w.Node) && !w.Listed(v.Name) {
		return reconcile.Result{}, nil
	}
	if Decide(v, w.Node, nil).Step == StepCreate {
		return w.begin(ctx, v)
	}
	record, err := w.record(ctx, v.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	return w.converge(ctx, v, record)
}

// begin carves a new replica. It does not look first whether there is one: a
// provisioner may have to start a process to be sure that there is none, and
// Create finds what an earlier life has made.
func (w *Worker) begin(ctx context.Context, v *v1alpha1.Volume) (reconcile.Result, error) {
	next, err := w.carve(ctx, v, StepCreate, nil)
	if errors.Is(err, provision.ErrConflict) {
		// What an earlier life has made may have another size by now.
		if record, err := w.record(ctx, v.Name); err == nil && record != nil {
			return w.converge(ctx, v, record)
		}
	}
	if err != nil {
		return w.refuse(ctx, v, StepCreate, nil, err)
	}
	return w.settle(ctx, v, Decide(v, w.Node, next))
}

func (w *Worker) lock(ctx context.Context, id string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return w.Locks.Lock(ctx, id)
}

// converge takes the step that Decide names, and reports.
func (w *Worker) converge(ctx context.Context, v *v1alpha1.Volume, record *provision.Volume) (reconcile.Result, error) {
	d := Decide(v, w.Node, record)
	if d.Step == StepKeep {
		w.Orphans.Keep(ctx, what, v.Name, orphans.Orphan{Reason: v1alpha1.OrphanNotPlaced, Message: d.Message})
		return reconcile.Result{}, nil
	}
	w.Orphans.Forget(v.Name)
	switch d.Step {
	case StepRemove:
		return w.remove(ctx, v.Name, record)
	case StepExpand:
		next, err := w.carve(ctx, v, d.Step, record)
		if err != nil {
			return w.refuse(ctx, v, d.Step, record, err)
		}
		d = Decide(v, w.Node, next)
	}
	return w.settle(ctx, v, d)
}

// settle reports a replica that is as it should be, and has it formatted.
func (w *Worker) settle(ctx context.Context, v *v1alpha1.Volume, d Decision) (reconcile.Result, error) {
	if result, err := w.report(ctx, v, d); err != nil || !result.IsZero() {
		return result, err
	}
	if d.Format != "" {
		w.Format(provision.FormatRequest{ID: v.Name, Filesystem: string(d.Format), Options: v.Spec.MkfsOptions})
	}
	return reconcile.Result{}, nil
}

// refuse reports a step that failed and says when to try again.
func (w *Worker) refuse(ctx context.Context, v *v1alpha1.Volume, step Step, record *provision.Volume, err error) (reconcile.Result, error) {
	if ctx.Err() != nil {
		return reconcile.Result{}, err // the process ends: nothing was learnt about the pool
	}
	entry := refusal(v, w.Node, step, record, err)
	switch entry.Reason {
	case v1alpha1.ReasonNoSpace:
		w.Refused()
	case v1alpha1.ReasonProvisionerError:
		w.Doubt()
	}
	result, reportErr := w.report(ctx, v, report(v.Entry(w.Node), entry))
	if reportErr != nil || !result.IsZero() {
		return result, reportErr
	}
	if entries.Retried(entry.Reason) {
		return reconcile.Result{}, err
	}
	log.FromContext(ctx).Info("step refused", "volume", v.Name, "step", step, "reason", entry.Reason, "message", entry.Message)
	return reconcile.Result{RequeueAfter: refusedDelay}, nil
}

// report writes the entry if it says something new.
func (w *Worker) report(ctx context.Context, v *v1alpha1.Volume, d Decision) (reconcile.Result, error) {
	if d.Step != StepReport {
		return reconcile.Result{}, nil
	}
	err := w.Objects.Report(ctx, v, d.Entry)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: staleDelay}, nil
	}
	return reconcile.Result{}, err
}
