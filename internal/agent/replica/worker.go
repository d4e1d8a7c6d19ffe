package replica

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/worker"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/replica"
	"berth.dev/berth/internal/provision"
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

// Worker brings the replicas of one node to the state that their Volumes want.
type Worker struct {
	worker.Base
	Objects     Objects
	Provisioner provision.Provisioner
	// Format is called for a replica that is ready and still blank. It must not block.
	Format func(r provision.FormatRequest)
	// Mounts are the paths where a volume's device is mounted or bound.
	Mounts func(v provision.Volume) ([]string, error)

	// begun maps the names of volumes to their objects' uids. A volume is in it if this
	// process saw that the node had nothing of it before it began to make it, until an entry
	// says that it is there. A restart loses the map: data is then kept instead of removed.
	begun sync.Map
}

var _ reconcile.Reconciler = (*Worker)(nil)

// Reconcile takes the next step for one volume.
func (w *Worker) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	unlock, err := w.Lock(ctx, r.Name)
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
	if replica.Departed(v, w.Node) && !w.Listed(v.Name) {
		return reconcile.Result{}, nil
	}
	if v.Entry(w.Node).HasData() {
		w.begun.Delete(v.Name)
	}
	if replica.Decide(v, w.Node, replica.Facts{}).Verb == decide.Create {
		return w.begin(ctx, v)
	}
	record, err := w.record(ctx, v.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	return w.converge(ctx, v, record)
}

// begin carves a new replica, or finds the one that an earlier run of the agent made.
func (w *Worker) begin(ctx context.Context, v *v1alpha1.Volume) (reconcile.Result, error) {
	if !w.made(v) && !tellsItself(v) {
		record, err := w.record(ctx, v.Name)
		if err != nil {
			return reconcile.Result{}, err
		}
		if record != nil {
			return w.converge(ctx, v, record)
		}
		w.begun.Store(v.Name, v.UID)
	}
	next, err := w.carve(ctx, v, decide.Create, nil)
	if errors.Is(err, provision.ErrConflict) {
		// A replica that an earlier run made may have another size by now.
		if record, err := w.record(ctx, v.Name); err == nil && record != nil {
			return w.converge(ctx, v, record)
		}
	}
	if err != nil {
		return w.refuse(ctx, v, decide.Create, nil, err)
	}
	return w.converge(ctx, v, next)
}

// tellsItself says whether the record alone tells a volume that was just made from one that
// a pod may have used. Then begin need not look for a record first, for which a provisioner
// may have to start a process.
func tellsItself(v *v1alpha1.Volume) bool {
	return v.Spec.VolumeMode == v1alpha1.Filesystem && v.Spec.Source == nil
}

// made says whether this process made the node's data, for this very object.
func (w *Worker) made(v *v1alpha1.Volume) bool {
	uid, _ := w.begun.Load(v.Name) // nil, which is no uid, if the volume was not begun
	return uid == v.UID
}

// converge takes the step that Decide names, and reports.
func (w *Worker) converge(ctx context.Context, v *v1alpha1.Volume, record *provision.Volume) (reconcile.Result, error) {
	f := replica.Facts{Record: record, Made: w.made(v)}
	if record == nil {
		var err error
		if f.Lost, err = w.lost(ctx, v); err != nil {
			return reconcile.Result{}, err
		}
	}
	d := replica.Decide(v, w.Node, f)
	if d.Verb == decide.Keep {
		w.Keep(ctx, what, v.Name, d.Message)
		return w.report(ctx, v, d)
	}
	w.Orphans.Forget(v.Name)
	switch d.Verb {
	case decide.Remove:
		return w.removeIfLive(ctx, record, true)
	case decide.Expand:
		next, err := w.carve(ctx, v, d.Verb, record)
		if err != nil {
			return w.refuse(ctx, v, d.Verb, record, err)
		}
		f.Record = next
		d = replica.Decide(v, w.Node, f)
	}
	result, err := w.settle(ctx, v, d)
	if err == nil && result.IsZero() && f.Lost {
		result.RequeueAfter = worker.RefusedDelay
	}
	return result, err
}

// settle reports a replica that is as it should be, and has it formatted.
func (w *Worker) settle(ctx context.Context, v *v1alpha1.Volume, d replica.Answer) (reconcile.Result, error) {
	if result, err := w.report(ctx, v, d); err != nil || !result.IsZero() {
		return result, err
	}
	if d.Format != "" {
		w.Format(provision.FormatRequest{ID: v.Name, Filesystem: string(d.Format), Options: v.Spec.MkfsOptions})
	}
	return reconcile.Result{}, nil
}

// refuse reports a step that failed and says when to try again.
func (w *Worker) refuse(ctx context.Context, v *v1alpha1.Volume, step decide.Verb, record *provision.Volume, err error) (reconcile.Result, error) {
	return w.Refuse(ctx, worker.Refusal{
		What: what, Name: v.Name, Step: string(step), Err: err,
		Report: func(reason, message string) (reconcile.Result, error) {
			return w.report(ctx, v, replica.Refusal(v, w.Node, replica.Facts{Record: record}, step, reason, message))
		},
	})
}

// report writes the entry if it says something new.
func (w *Worker) report(ctx context.Context, v *v1alpha1.Volume, d replica.Answer) (reconcile.Result, error) {
	if !d.News {
		return reconcile.Result{}, nil
	}
	err := w.Objects.Report(ctx, v, d.Entry)
	if err == nil && (d.Entry.HasData() || d.Entry.State == v1alpha1.ReplicaGone) {
		w.begun.Delete(v.Name)
	}
	return worker.Reported(err)
}
