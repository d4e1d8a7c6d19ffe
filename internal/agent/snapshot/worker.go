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
	"berth.dev/berth/internal/decide/snapshot"
	"berth.dev/berth/internal/provision"
)

// Objects is the API server as this package uses it.
type Objects interface {
	// Watched returns a snapshot of this node from the watch; it may be stale.
	Watched(ctx context.Context, name string) (*v1alpha1.Snapshot, error)
	// Live reads a snapshot from the API server.
	Live(ctx context.Context, name string) (*v1alpha1.Snapshot, error)
	// Volume reads a volume from the API server.
	Volume(ctx context.Context, name string) (*v1alpha1.Volume, error)
	// Class returns a PoolClass from the watch.
	Class(ctx context.Context, name string) (*v1alpha1.PoolClass, error)
	// Report applies this node's entry if the snapshot is still the one given; else
	// the error is a conflict.
	Report(ctx context.Context, s *v1alpha1.Snapshot, entry *v1alpha1.SnapshotReplica) error
}

// Provisioner is the part of the node's disks that the worker uses; poold.Node is one.
type Provisioner interface {
	provision.Snapshotter
	Get(ctx context.Context, id string) (provision.Volume, error)
}

// Worker brings the snapshots of one node to the state that their objects want.
type Worker struct {
	worker.Base
	Objects     Objects
	Provisioner Provisioner
}

var _ reconcile.Reconciler = (*Worker)(nil)

// Reconcile takes the next step for one snapshot.
func (w *Worker) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	unlock, err := w.Lock(ctx, r.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	defer unlock()

	s, err := w.Objects.Watched(ctx, r.Name)
	if apierrors.IsNotFound(err) {
		return w.unwatched(ctx, r.Name)
	}
	if err != nil {
		return reconcile.Result{}, err
	}
	switch snapshot.Decide(s, w.Node, snapshot.Facts{}).Verb {
	case decide.Take:
		return w.begin(ctx, s)
	case decide.None:
		if !w.Listed(s.Name) {
			return reconcile.Result{}, nil
		}
	}
	record, err := w.record(ctx, s.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	return w.converge(ctx, s, record)
}

// begin takes a snapshot. It does not look first whether there is one: a provisioner
// may have to start a process to be sure that there is none. If an earlier run of the agent
// took it, the provisioner finds it, or begin does after a refusal: its volume may be gone.
func (w *Worker) begin(ctx context.Context, s *v1alpha1.Snapshot) (reconcile.Result, error) {
	taken, err := w.take(ctx, s)
	if err == nil {
		return w.report(ctx, s, snapshot.Decide(s, w.Node, snapshot.Facts{Record: taken}))
	}
	if ctx.Err() == nil {
		if record, missing := w.record(ctx, s.Name); missing == nil && record != nil {
			return w.converge(ctx, s, record)
		}
	}
	return w.refuse(ctx, s, decide.Take, nil, err)
}

// converge takes the step that Decide names, and reports.
func (w *Worker) converge(ctx context.Context, s *v1alpha1.Snapshot, record *provision.Snapshot) (reconcile.Result, error) {
	f := snapshot.Facts{Record: record}
	if record == nil {
		var err error
		if f.Lost, err = w.lost(ctx, s); err != nil {
			return reconcile.Result{}, err
		}
	}
	d := snapshot.Decide(s, w.Node, f)
	if d.Verb == decide.Keep {
		w.Keep(ctx, what, s.Name, d.Message)
		return w.report(ctx, s, d)
	}
	w.Orphans.Forget(s.Name)
	if d.Verb == decide.Remove {
		return w.removeIfLive(ctx, record, true)
	}
	result, err := w.report(ctx, s, d)
	if err == nil && result.IsZero() && f.Lost {
		result.RequeueAfter = worker.RefusedDelay
	}
	return result, err
}

// refuse reports a step that failed and says when to try again.
func (w *Worker) refuse(ctx context.Context, s *v1alpha1.Snapshot, step decide.Verb, record *provision.Snapshot, err error) (reconcile.Result, error) {
	r := worker.Refusal{What: what, Name: s.Name, Step: string(step), Err: err}
	if step == decide.Take {
		r.Final = snapshot.Final
	}
	r.Report = func(reason, message string) (reconcile.Result, error) {
		return w.report(ctx, s, snapshot.Refusal(s, w.Node, snapshot.Facts{Record: record}, step, reason, message))
	}
	return w.Refuse(ctx, r)
}

// report writes the entry if it says something new.
func (w *Worker) report(ctx context.Context, s *v1alpha1.Snapshot, d snapshot.Answer) (reconcile.Result, error) {
	if !d.News {
		return reconcile.Result{}, nil
	}
	return worker.Reported(w.Objects.Report(ctx, s, d.Entry))
}

// record returns the provisioner's record of a snapshot, nil when the provisioner says that
// there is none.
func (w *Worker) record(ctx context.Context, id string) (*provision.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, worker.StepTimeout)
	defer cancel()
	got, err := w.Provisioner.GetSnapshot(ctx, id)
	switch {
	case errors.Is(err, provision.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking up the snapshot's record: %w", err)
	}
	return &got, nil
}
