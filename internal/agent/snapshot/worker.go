package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	// stepTimeout bounds each call of the provisioner and each wait for a lock. What
	// has begun is finished by the provisioner; the next try finds its outcome.
	stepTimeout = time.Minute
	// staleDelay lets the watch catch up after a lost compare-and-swap.
	staleDelay = 20 * time.Millisecond
	// refusedDelay is how long a refused step waits when nothing changes.
	refusedDelay = time.Minute
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

// Provisioner is what the worker needs of the node's disks; poold.Node is one.
type Provisioner interface {
	provision.Snapshotter
	Get(ctx context.Context, id string) (provision.Volume, error)
}

// Locks are held by id, of snapshots and of volumes, and shared with whoever deletes
// volumes.
type Locks interface {
	Lock(ctx context.Context, key string) (unlock func(), err error)
}

// Worker brings the snapshots of one node to what their objects want.
type Worker struct {
	Node        string
	Objects     Objects
	Provisioner Provisioner
	Locks       Locks
	// Refused is told when a step found no room. It must not block.
	Refused func()
	// Doubt is told when the provisioner did not work. It must not block.
	Doubt func()
	// Listed says whether the latest report of the pools shows a snapshot.
	Listed func(id string) bool
	// Pool is what the latest report says of a pool; of one that it lacks, no more
	// than the name.
	Pool func(ref provision.PoolRef) provision.Pool
	// Orphans is told of snapshots that no object accounts for.
	Orphans *orphans.Set
	// Word says whether an orphan may be deleted.
	Word func(ctx context.Context, r orphans.Record) (orphans.Verdict, error)
}

var _ reconcile.Reconciler = (*Worker)(nil)

// Reconcile takes the next step for one snapshot.
func (w *Worker) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	unlock, err := w.lock(ctx, r.Name)
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
	switch Decide(s, w.Node, nil).Step {
	case StepTake:
		return w.begin(ctx, s)
	case StepNone:
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
// may have to start a process to be sure that there is none. One that an earlier life
// took is found by the provisioner, or here after a refusal: its volume may be gone.
func (w *Worker) begin(ctx context.Context, s *v1alpha1.Snapshot) (reconcile.Result, error) {
	taken, err := w.take(ctx, s)
	if err == nil {
		return w.report(ctx, s, Decide(s, w.Node, taken))
	}
	if ctx.Err() == nil {
		if record, missing := w.record(ctx, s.Name); missing == nil && record != nil {
			return w.converge(ctx, s, record)
		}
	}
	return w.refuse(ctx, s, StepTake, nil, err)
}

func (w *Worker) lock(ctx context.Context, id string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return w.Locks.Lock(ctx, id)
}

// converge takes the step that Decide names, and reports.
func (w *Worker) converge(ctx context.Context, s *v1alpha1.Snapshot, record *provision.Snapshot) (reconcile.Result, error) {
	d := Decide(s, w.Node, record)
	if d.Step == StepKeep {
		w.Orphans.Keep(ctx, what, s.Name, orphans.Orphan{Reason: v1alpha1.OrphanNotPlaced, Message: d.Message})
		return reconcile.Result{}, nil
	}
	w.Orphans.Forget(s.Name)
	if d.Step == StepRemove {
		return w.remove(ctx, s.Name, record)
	}
	return w.report(ctx, s, d)
}

// refuse reports a step that failed and says when to try again.
func (w *Worker) refuse(ctx context.Context, s *v1alpha1.Snapshot, step Step, record *provision.Snapshot, err error) (reconcile.Result, error) {
	if ctx.Err() != nil {
		return reconcile.Result{}, err // the process ends: nothing was learnt about the pool
	}
	reason, message := entries.Reason(err), entries.Message(w.Node, err)
	switch reason {
	case v1alpha1.ReasonNoSpace:
		w.Refused()
	case v1alpha1.ReasonProvisionerError:
		w.Doubt()
	}
	var next *v1alpha1.SnapshotReplica
	if step == StepTake {
		next = failedEntry(s, wishFor(s, w.Node), reason, message)
	} else {
		next = stuckEntry(s, w.Node, record, reason, message)
	}
	result, reportErr := w.report(ctx, s, report(s.Entry(w.Node), next))
	if reportErr != nil || !result.IsZero() {
		return result, reportErr
	}
	if entries.Retried(reason) {
		return reconcile.Result{}, err
	}
	log.FromContext(ctx).Info("step refused", "snapshot", s.Name, "step", step, "reason", reason, "message", message)
	if step == StepTake && slices.Contains(final, reason) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: refusedDelay}, nil
}

// report writes the entry if it says something new.
func (w *Worker) report(ctx context.Context, s *v1alpha1.Snapshot, d Decision) (reconcile.Result, error) {
	if d.Step != StepReport {
		return reconcile.Result{}, nil
	}
	err := w.Objects.Report(ctx, s, d.Entry)
	switch {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: staleDelay}, nil
	}
	return reconcile.Result{}, err
}

// record returns what the provisioner knows of a snapshot, nil when it says that
// there is none.
func (w *Worker) record(ctx context.Context, id string) (*provision.Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
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
