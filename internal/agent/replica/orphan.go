package replica

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/provision"
)

// orphan keeps data of which the API server says that it has no object, unless it
// was told to forget it.
func (w *Worker) orphan(ctx context.Context, record *provision.Volume) (reconcile.Result, error) {
	why := orphans.Orphan{Reason: v1alpha1.OrphanNoObject, Message: fmt.Sprintf(
		"volume %s on node %s has no Volume object: the data is kept; adopt it, forget it, or restore the object", record.ID, w.Node)}
	verdict, err := w.Word(ctx, orphans.Record{
		Name: record.ID, Pool: record.Pool.Name, Size: record.Size, Known: w.Orphans.Known(record.ID)})
	if err != nil || !verdict.Delete {
		if verdict.Reason == orphans.ReasonChanged || verdict.Reason == orphans.ReasonStale {
			why.Message = verdict.Message
		}
		w.keep(ctx, record.ID, why)
		return reconcile.Result{RequeueAfter: verdict.Again}, err
	}
	// After the word, so that who adopts the data meanwhile is heard.
	if _, err := w.Objects.Live(ctx, record.ID); !apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: staleDelay}, err
	}
	if err := w.delete(ctx, record); err != nil {
		why.Message = fmt.Sprintf("volume %s on node %s is to be deleted (%s), and cannot be: %v", record.ID, w.Node, verdict.Message, err)
		w.keep(ctx, record.ID, why)
		return reconcile.Result{}, err
	}
	w.Orphans.Forget(record.ID)
	log.FromContext(ctx).Info("orphaned volume deleted", "volume", record.ID, "pool", record.Pool.Name,
		"bytes", record.Size, "reason", verdict.Reason, "message", verdict.Message)
	return reconcile.Result{}, nil
}

// keep leaves data where it is although nothing accounts for it, and says so.
func (w *Worker) keep(ctx context.Context, name string, why orphans.Orphan) {
	if w.Orphans.Add(name, why) {
		log.FromContext(ctx).Info("orphaned volume kept", "volume", name, "reason", why.Reason, "message", why.Message)
	}
}
