package upkeep

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/api/v1alpha1"
)

// StorageNodes deletes the report of a node whose Node object is gone. It
// touches no Volume: a deleted Node object is no proof that data is gone.
type StorageNodes struct {
	Client client.Client
	// Live confirms that a Node is gone: the cache may not have seen a new one.
	Live client.Reader
}

// SetupWithManager adds the reconciler. A Node and its StorageNode have one name.
func (r *StorageNodes) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("storagenode").
		For(&v1alpha1.StorageNode{}).
		Watches(&corev1.Node{}, &handler.EnqueueRequestForObject{}).
		Complete(r)
}

// Reconcile deletes the StorageNode if its Node is gone.
func (r *StorageNodes) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	name := types.NamespacedName{Name: request.Name}
	report := &v1alpha1.StorageNode{}
	if err := r.Client.Get(ctx, name, report); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		switch err := reader.Get(ctx, name, &corev1.Node{}); {
		case err == nil:
			return ctrl.Result{}, nil
		case !apierrors.IsNotFound(err):
			return ctrl.Result{}, fmt.Errorf("reading node %s: %w", request.Name, err)
		}
	}
	err := r.Client.Delete(ctx, report, client.Preconditions{UID: &report.UID})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("deleting storage node %s: %w", request.Name, err)
	}
	log.FromContext(ctx).Info("deleted the report of a node that is gone", "node", request.Name)
	return ctrl.Result{}, nil
}
