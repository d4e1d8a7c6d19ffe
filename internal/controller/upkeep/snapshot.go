package upkeep

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase"
)

// Snapshots keeps finalizer and labels of Snapshots.
type Snapshots struct {
	Client client.Client
	// Live confirms that a Node is gone: the cache may not have seen a new one.
	Live  client.Reader
	Nodes usecase.Nodes
}

// SetupWithManager adds the reconciler.
func (r *Snapshots) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("snapshot").For(&v1alpha1.Snapshot{}).Complete(r)
}

// Reconcile makes at most one write.
func (r *Snapshots) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s := &v1alpha1.Snapshot{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: request.Name}, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	gone, err := forgotten(ctx, r.Live, r.Nodes, s)
	if err != nil {
		return ctrl.Result{}, err
	}
	if tidyMetadata(s, v1alpha1.SnapshotFinalizer, usecase.PlacedSnapshot(s), r.Nodes, gone) {
		err := r.Client.Update(ctx, s)
		if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // the event of the other write brings us back
			return ctrl.Result{}, fmt.Errorf("updating labels and finalizer of snapshot %s: %w", s.Name, err)
		}
	}
	if s.DeletionTimestamp != nil {
		return ctrl.Result{RequeueAfter: lookAgain}, nil
	}
	return ctrl.Result{}, nil
}
