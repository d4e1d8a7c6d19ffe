package upkeep

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
)

// PoolClasses counts the nodes that serve each class.
type PoolClasses struct {
	Client client.Client
}

// SetupWithManager adds the reconciler. A node's report may concern any class,
// also one that it has just stopped to serve; classes are few.
func (r *PoolClasses) SetupWithManager(m ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(m).Named("poolclass").
		For(&v1alpha1.PoolClass{}).
		Watches(&v1alpha1.StorageNode{}, handler.EnqueueRequestsFromMapFunc(r.all)).
		Complete(r)
}

func (r *PoolClasses) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var classes v1alpha1.PoolClassList
	if err := r.Client.List(ctx, &classes, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache is not there yet; every class is reconciled when it is
	}
	requests := make([]reconcile.Request, 0, len(classes.Items))
	for i := range classes.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: classes.Items[i].Name}})
	}
	return requests
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

// assess brings a class's status in line with the nodes' reports, and says
// whether it changed.
func assess(class *v1alpha1.PoolClass, reports []v1alpha1.StorageNode) bool {
	nodes := int32(0)
	for i := range reports {
		if serves(&reports[i], class.Name) {
			nodes++
		}
	}
	ready := metav1.Condition{Type: ConditionReady, ObservedGeneration: class.Generation,
		Status: metav1.ConditionTrue, Reason: reasonServed, Message: fmt.Sprintf("%d nodes serve this class", nodes)}
	switch nodes {
	case 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, reasonNoNode
		ready.Message = "no node serves this class: none that it selects has one of its pools in good health"
	case 1:
		ready.Message = "1 node serves this class"
	}
	changed := class.Status.Nodes != nodes
	class.Status.Nodes = nodes
	return meta.SetStatusCondition(&class.Status.Conditions, ready) || changed
}

// serves says whether a node has a healthy pool of a class and can be asked.
func serves(report *v1alpha1.StorageNode, class string) bool {
	if meta.IsStatusConditionFalse(report.Status.Conditions, ConditionReady) {
		return false
	}
	return slices.ContainsFunc(report.Status.Pools, func(pool v1alpha1.Pool) bool {
		return pool.Health == v1alpha1.PoolHealthy && slices.Contains(pool.Classes, class)
	})
}
