package worker

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/orphan"
	"berth.dev/berth/internal/decide/placed"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
)

// unwatched handles a name for which the watch shows no object: the object was deleted, or lost
// this node's label, or only the pool knows of the data.
func (w worker[O, E, R]) unwatched(ctx context.Context, name string) (reconcile.Result, error) {
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
	return w.remove(ctx, record, false)
}

// remove removes data that no object accounts for: the watch shows no object of its name, or one
// that does not want the data here. An event of the watch proves nothing, because the loss of
// the node's label looks like a deletion. So the object decides, read from the API server.
func (w worker[O, E, R]) remove(ctx context.Context, record *R, watched bool) (reconcile.Result, error) {
	data, noObject := w.Describe(record, w.Node)
	live, err := w.Live(ctx, data.Name)
	if apierrors.IsNotFound(err) {
		return w.Orphans.Settle(ctx, orphans.Case{
			Record: data, What: w.What, Node: w.Node, Message: noObject, Word: w.Word,
			Object: func(ctx context.Context) error {
				_, err := w.Live(ctx, data.Name)
				return err
			},
			Delete: func(ctx context.Context) error { return w.delete(ctx, data.Name, record) },
		})
	}
	if errors.Is(err, driver.ErrForeign) {
		// The data has an object again. An order to forget it as an orphan, and a deadline, end.
		w.Orphans.Forget(data.Name)
		return reconcile.Result{}, nil
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the %s before removing its data: %w", w.What, err)
	}
	d := w.Decide(w.look(live, record))
	switch d.Verb {
	case decide.Remove:
		return w.removed(ctx, live, record, w.delete(ctx, data.Name, record))
	case decide.Keep:
		w.keep(ctx, data.Name, d.Decision)
		return reconcile.Result{}, nil
	}
	w.Orphans.Forget(data.Name)
	if watched { // the watch is behind, and will bring the object that was just read
		return reconcile.Result{RequeueAfter: StaleDelay}, nil
	}
	// The label is missing although the spec lists this node. The controller puts it
	// back; until then the data stays as it is.
	return reconcile.Result{}, nil
}

// delete deletes data, and fails while it is used.
func (w worker[O, E, R]) delete(ctx context.Context, id string, record *R) error {
	ctx, cancel := context.WithTimeout(ctx, StepTimeout)
	defer cancel()
	if err := w.Delete(ctx, record); err != nil {
		return err
	}
	w.Deleted(id)
	return nil
}

// removed reports in the object how a deletion went.
func (w worker[O, E, R]) removed(ctx context.Context, live O, record *R, err error) (reconcile.Result, error) {
	if errors.Is(err, provision.ErrPoolMissing) {
		data, _ := w.Describe(record, w.Node)
		if waived, wordErr := w.waived(ctx, live, data.Pool); waived || wordErr != nil {
			err = wordErr
		}
	}
	if err != nil {
		return w.refuse(ctx, live, decide.Remove, record, err)
	}
	return w.report(ctx, live, w.Decide(w.look(live, nil)))
}

// keep notes data as an orphan whose object does not know that the node has anything of it.
func (w worker[O, E, R]) keep(ctx context.Context, name string, d decide.Decision) {
	w.Orphans.Keep(ctx, w.What, name, orphans.Orphan{Reason: v1alpha1.OrphanReason(d.Reason), Message: d.Message})
}

// lost says whether the missing record of data that should go proves nothing: the entry has
// the data in a pool that the node does not report, and it was not waived.
func (w worker[O, E, R]) lost(ctx context.Context, v placed.View[O, E, R]) (bool, error) {
	pool, data, _ := w.Says(v.Entry)
	if v.Wanted() || !data {
		return false, nil
	}
	reported, err := w.Reported(pool)
	if reported || err != nil {
		return false, err
	}
	waived, err := w.waived(ctx, v.Object, pool)
	return !waived, err
}

// waived says whether an administrator has given up data that is lost with its pool.
func (w worker[O, E, R]) waived(ctx context.Context, o O, pool string) (bool, error) {
	deleted := o.GetDeletionTimestamp()
	if deleted.IsZero() {
		return false, nil
	}
	return w.Waived(ctx, orphan.Lost{Name: o.GetName(), Pool: pool, Deleted: *deleted})
}
