package worker

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
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/provision"
)

const (
	// StepTimeout bounds each call of the provisioner and each wait for a lock, so that
	// a hanging pool cannot hold a worker. The provisioner finishes a step that has begun;
	// the next try finds its outcome.
	StepTimeout = time.Minute
	// StaleDelay lets the watch catch up after a lost compare-and-swap.
	StaleDelay = 20 * time.Millisecond
	// RefusedDelay is how long a refused step waits when nothing changes.
	RefusedDelay = time.Minute
)

// Locks locks volumes and snapshots by id. The workers share the locks with the CSI node
// service.
type Locks interface {
	Lock(ctx context.Context, key string) (unlock func(), err error)
}

// Base is the part of a worker that does not depend on the kind of its objects.
type Base struct {
	Node  string
	Locks Locks
	// Refused is called when a step found no room. It must not block.
	Refused func()
	// ToolFailed is called when the provisioner failed for no specific reason, so that the
	// pools are read again. It must not block.
	ToolFailed func()
	// Listed says whether the latest report of the pools may have data of that id.
	Listed func(id string) bool
	// Deleted is called after data was deleted, which the latest report still shows.
	Deleted func(id string)
	// Pool returns a pool as the latest report has it, or only its name if the report lacks
	// it.
	Pool func(ref provision.PoolRef) provision.Pool
	// Reported says whether the latest report of the pools has read the pool with that name:
	// then data that it lacks is not there. It fails before the first report.
	Reported func(pool string) (bool, error)
	// Waived says whether an administrator has given up data that is lost with its pool.
	Waived func(ctx context.Context, l orphan.Lost) (bool, error)
	// Orphans collects data that no object accounts for.
	Orphans *orphans.Set
	// Word says whether an orphan may be deleted.
	Word func(ctx context.Context, r orphan.Record) (orphan.Answer, error)
}

// Lock waits for a lock, for as long as a step may take.
func (b *Base) Lock(ctx context.Context, id string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, StepTimeout)
	defer cancel()
	return b.Locks.Lock(ctx, id)
}

// Class reads a PoolClass. One that does not exist is entries.ErrNoClass.
func Class(ctx context.Context, get func(ctx context.Context, name string) (*v1alpha1.PoolClass, error), name string) (*v1alpha1.PoolClass, error) {
	class, err := get(ctx, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: PoolClass %s does not exist", entries.ErrNoClass, name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading PoolClass %s: %w", name, err)
	}
	return class, nil
}

// Reported turns the error of reporting an entry into a result.
func Reported(err error) (reconcile.Result, error) {
	switch {
	case apierrors.IsNotFound(err): // the object is gone
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: StaleDelay}, nil
	}
	return reconcile.Result{}, err
}

// Refusal is a step that failed.
type Refusal struct {
	// What and Name are the object's kind and name, Step is the step that failed.
	What, Name, Step string
	Err              error
	// Final are the reasons for which no second try can help.
	Final []string
	// Report writes the node's entry.
	Report func(reason, message string) (reconcile.Result, error)
}

// Refuse reports a step that failed and says when to try again.
func (b *Base) Refuse(ctx context.Context, r Refusal) (reconcile.Result, error) {
	if ctx.Err() != nil {
		return reconcile.Result{}, r.Err // the process ends: nothing was learnt about the pool
	}
	reason, message := entries.Reason(r.Err), worded(b.Node, r.Err)
	switch reason {
	case v1alpha1.ReasonNoSpace:
		b.Refused()
	case v1alpha1.ReasonProvisionerError:
		b.ToolFailed()
	}
	if result, err := r.Report(reason, message); err != nil || !result.IsZero() {
		return result, err
	}
	if entries.Retried(reason) {
		return reconcile.Result{}, r.Err
	}
	log.FromContext(ctx).Info("step refused", "kind", r.What, "name", r.Name, "step", r.Step, "reason", reason, "message", message)
	if slices.Contains(r.Final, reason) {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: RefusedDelay}, nil
}

// worded words an error of a node for the claim's user.
func worded(node string, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("node %s: the provisioner does not answer in time: %v", node, err)
	}
	return fmt.Sprintf("node %s: %v", node, err)
}
