package attacher

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
)

const (
	// atOnce is for how many machines one cloud is asked at once. Operations go on meanwhile.
	atOnce = 16
	// minRetry and maxRetry bound the pause after an API server that did not answer.
	minRetry, maxRetry = 200 * time.Millisecond, 30 * time.Second
)

// SetupWithManager has the orders of each node carried out by the one controller that leads.
func (a *Attacher) SetupWithManager(m ctrl.Manager, scheme string) error {
	log := m.GetLogger().WithName("attacher")
	orders := predicate.NewPredicateFuncs(func(o client.Object) bool {
		n, ok := o.(*v1alpha1.StorageNode)
		return ok && len(n.Status.DiskOrders) > 0
	})
	return ctrl.NewControllerManagedBy(m).Named("attacher-"+scheme).
		For(&v1alpha1.StorageNode{}, builder.WithPredicates(orders)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: atOnce,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetry, maxRetry),
		}).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			again, err := a.Carry(ctx, r.Name)
			if err != nil && ctx.Err() == nil {
				log.Info("carrying out the orders of a node failed, trying again", "node", r.Name, "reason", err.Error())
			}
			return reconcile.Result{RequeueAfter: again}, err
		}))
}
