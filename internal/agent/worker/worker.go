package worker

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/provision"
)

// worker works on objects of one kind.
type worker[O placed.Object[E], E, R any] struct {
	*Base
	placed.Kind[O, E, R]
	Access[O, E, R]
}

// Reconcile takes the next step for one object of a kind.
func Reconcile[O placed.Object[E], E, R any](ctx context.Context, b *Base, k placed.Kind[O, E, R], a Access[O, E, R], name string) (reconcile.Result, error) {
	return worker[O, E, R]{b, k, a}.reconcile(ctx, name)
}

// look returns the view of an object with the record of its data.
func (w worker[O, E, R]) look(o O, record *R) placed.View[O, E, R] {
	return placed.Look(o, w.Node, placed.Facts[R]{Record: record, Made: w.made(o)})
}

func (w worker[O, E, R]) reconcile(ctx context.Context, name string) (reconcile.Result, error) {
	unlock, err := w.Lock(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	defer unlock()

	o, err := w.Watched(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return w.unwatched(ctx, name)
	case err != nil:
		return reconcile.Result{}, err
	}
	v := w.look(o, nil)
	if w.Settled(v) && !w.Listed(name) {
		return reconcile.Result{}, nil
	}
	if _, data, _ := w.Says(v.Entry); data {
		w.begun.Delete(name)
	}
	if verb := w.Decide(v).Verb; verb == decide.Create || verb == decide.Take {
		return w.begin(ctx, o, verb)
	}
	record, err := w.record(ctx, name)
	if err != nil {
		return reconcile.Result{}, err
	}
	return w.converge(ctx, o, record)
}

// begin makes new data, or finds what an earlier run of the agent made. It looks for a record
// only where it must: a provisioner may have to start a process to be sure that there is none.
func (w worker[O, E, R]) begin(ctx context.Context, o O, verb decide.Verb) (reconcile.Result, error) {
	name := o.GetName()
	if w.Unsure(o) && !w.made(o) {
		record, err := w.record(ctx, name)
		if err != nil {
			return reconcile.Result{}, err
		}
		if record != nil {
			return w.converge(ctx, o, record)
		}
		w.begun.Store(name, o.GetUID())
	}
	made, err := w.Make(ctx, o, verb, nil)
	if err != nil && ctx.Err() == nil && w.MayExist(err) {
		if record, _ := w.record(ctx, name); record != nil {
			made, err = record, nil
		}
	}
	if err != nil {
		return w.refuse(ctx, o, verb, nil, err)
	}
	return w.converge(ctx, o, made)
}

// made says whether this process made the node's data, for this very object.
func (w worker[O, E, R]) made(o O) bool {
	uid, _ := w.begun.Load(o.GetName()) // nil, which is no uid, if the data was not begun
	return uid == o.GetUID()
}

// record returns the provisioner's record, nil when the provisioner says that there is none.
func (w worker[O, E, R]) record(ctx context.Context, id string) (*R, error) {
	ctx, cancel := context.WithTimeout(ctx, StepTimeout)
	defer cancel()
	record, err := w.Record(ctx, id)
	switch {
	case errors.Is(err, provision.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("looking up the %s's record: %w", w.What, err)
	}
	return &record, nil
}

// converge takes the step that Decide names, and reports.
func (w worker[O, E, R]) converge(ctx context.Context, o O, record *R) (reconcile.Result, error) {
	v := w.look(o, record)
	if record == nil {
		var err error
		if v.Lost, err = w.lost(ctx, v); err != nil {
			return reconcile.Result{}, err
		}
	}
	d := w.Decide(v)
	if d.Verb == decide.Keep {
		w.keep(ctx, o.GetName(), d.Decision)
		return w.report(ctx, o, d)
	}
	w.Orphans.Forget(o.GetName())
	switch d.Verb {
	case decide.Remove:
		return w.remove(ctx, record, true)
	case decide.Expand:
		next, err := w.Make(ctx, o, d.Verb, record)
		if err != nil {
			return w.refuse(ctx, o, d.Verb, record, err)
		}
		v.Record = next
		d = w.Decide(v)
	}
	if result, err := w.report(ctx, o, d); err != nil || !result.IsZero() {
		return result, err
	}
	if d.Format.Filesystem != "" {
		w.Format(d.Format)
	}
	if v.Lost {
		return reconcile.Result{RequeueAfter: RefusedDelay}, nil
	}
	return reconcile.Result{}, nil
}

// refuse reports a step that failed and says when to try again.
func (w worker[O, E, R]) refuse(ctx context.Context, o O, verb decide.Verb, record *R, err error) (reconcile.Result, error) {
	if ctx.Err() != nil {
		return reconcile.Result{}, err // the process ends: nothing was learnt about the pool
	}
	reason, message := entries.Reason(err), worded(w.Node, err)
	switch reason {
	case v1alpha1.ReasonNoSpace:
		w.Refused()
	case v1alpha1.ReasonProvisionerError:
		w.ToolFailed()
	}
	d := w.Refusal(w.look(o, record), verb, reason, message)
	if result, err := w.report(ctx, o, d); err != nil || !result.IsZero() {
		return result, err
	}
	if entries.Retried(reason) {
		return reconcile.Result{}, err
	}
	log.FromContext(ctx).Info("step refused", "kind", w.What, "name", o.GetName(), "step", verb, "reason", reason, "message", message)
	if d.Final {
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

// report writes the entry if it says something new.
func (w worker[O, E, R]) report(ctx context.Context, o O, d placed.Answer[E]) (reconcile.Result, error) {
	if !d.News {
		return reconcile.Result{}, nil
	}
	err := w.Report(ctx, o, d.Entry)
	switch {
	case apierrors.IsNotFound(err): // the object is gone
		return reconcile.Result{}, nil
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: StaleDelay}, nil
	case err != nil:
		return reconcile.Result{}, err
	}
	if _, data, gone := w.Says(d.Entry); data || gone {
		w.begun.Delete(o.GetName())
	}
	return reconcile.Result{}, nil
}
