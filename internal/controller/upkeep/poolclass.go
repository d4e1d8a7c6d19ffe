package upkeep

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
)

// PoolClasses counts the nodes that serve each class.
type PoolClasses struct {
	Client client.Client
}

// SetupWithManager adds the reconciler. Counting the nodes of a class reads all of them, and
// reports come all the time: a class is counted only when a report begins or ceases to serve it.
func (r *PoolClasses) SetupWithManager(m ctrl.Manager) error {
	queue := func(q workqueue.TypedRateLimitingInterface[reconcile.Request], before, after client.Object) {
		for _, class := range changed(before, after) {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: class}})
		}
	}
	type line = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return ctrl.NewControllerManagedBy(m).Named("poolclass").
		For(&v1alpha1.PoolClass{}).
		Watches(&v1alpha1.StorageNode{}, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, q line) { queue(q, nil, e.Object) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, q line) { queue(q, e.ObjectOld, e.ObjectNew) },
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, q line) { queue(q, e.Object, nil) },
		}).
		Complete(r)
}

// changed returns the classes that one of two reports of a node serves and the other does
// not. Either may be nil.
func changed(before, after client.Object) []string {
	was, is := servedBy(before), servedBy(after)
	var classes []string
	for class := range was {
		if !is[class] {
			classes = append(classes, class)
		}
	}
	for class := range is {
		if !was[class] {
			classes = append(classes, class)
		}
	}
	return classes
}

// servedBy returns the classes that a report serves.
func servedBy(o client.Object) map[string]bool {
	classes := map[string]bool{}
	report, ok := o.(*v1alpha1.StorageNode)
	if !ok {
		return classes
	}
	for _, pool := range report.Status.Pools {
		for _, class := range pool.Classes {
			if serves(report, class) {
				classes[class] = true
			}
		}
	}
	return classes
}

// Reconcile writes the status if it changed.
func (r *PoolClasses) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	class := &v1alpha1.PoolClass{}
	if err := r.Client.Get(ctx, types.NamespacedName{Name: request.Name}, class); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var reports v1alpha1.StorageNodeList
	if err := r.Client.List(ctx, &reports, client.UnsafeDisableDeepCopy); err != nil {
		return ctrl.Result{}, fmt.Errorf("listing storage nodes: %w", err)
	}
	if !assess(class, reports.Items) {
		return ctrl.Result{}, nil
	}
	err := r.Client.Status().Update(ctx, class)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{}, nil
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("updating status of PoolClass %s: %w", class.Name, err)
	}
	return ctrl.Result{}, nil
}
