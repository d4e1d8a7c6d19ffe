package worker

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/decide/orphan"
)

// Unaccounted is data that no object accounts for: the watch shows no object of its name, or
// one that does not want the data here. An event of the watch proves nothing, because the loss
// of the node's label looks like a deletion. So the object decides, read from the API server.
type Unaccounted struct {
	// Record is the data as its pool has it.
	orphan.Record
	// What is the kind of the data, "volume" or "snapshot".
	What string
	// Watched says that the watch shows the object.
	Watched bool
	// Lost tells people that the data has no object, and what to do.
	Lost string
	// Read reads the object from the API server.
	Read func(ctx context.Context) error
	// Decide returns the wish of the object that was read: to remove the data, or to keep it,
	// and why; or neither, since it belongs here.
	Decide func() (remove bool, keep string)
	// Delete deletes the data, and fails while it is used.
	Delete func(ctx context.Context) error
	// Deleted reports in the object how the deletion went.
	Deleted func(ctx context.Context, err error) (reconcile.Result, error)
}

// Settle removes the data or keeps it.
func (b *Base) Settle(ctx context.Context, d Unaccounted) (reconcile.Result, error) {
	err := d.Read(ctx)
	if apierrors.IsNotFound(err) {
		return b.Orphans.Settle(ctx, orphans.Case{
			Record: d.Record, What: d.What, Node: b.Node, Message: d.Lost, Word: b.Word, Object: d.Read, Delete: d.Delete,
		})
	}
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("reading the %s before removing its data: %w", d.What, err)
	}
	remove, keep := d.Decide()
	switch {
	case remove:
		return d.Deleted(ctx, d.Delete(ctx))
	case keep != "":
		b.Keep(ctx, d.What, d.Name, keep)
		return reconcile.Result{}, nil
	}
	b.Orphans.Forget(d.Name)
	if d.Watched { // the watch is behind, and will bring the object that was just read
		return reconcile.Result{RequeueAfter: StaleDelay}, nil
	}
	// The label is missing although the spec lists this node. The controller puts it
	// back; until then the data stays as it is.
	return reconcile.Result{}, nil
}

// Keep notes data as an orphan whose object does not know that the node has anything of it.
func (b *Base) Keep(ctx context.Context, what, name, why string) {
	b.Orphans.Keep(ctx, what, name, orphans.Orphan{Reason: v1alpha1.OrphanNotPlaced, Message: why})
}
