package upkeep

import (
	"context"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
)

// Capacities withdraws the capacities that a silent agent has published: no volume can be made on
// its node, and a scheduler that is told of room there would choose the node again and again. The
// objects are deleted and not set to zero: an agent that does run watches for deletions of its
// objects, and publishes them again.
type Capacities struct {
	// Driver whose capacities are withdrawn.
	Driver driver.Driver
	Client client.Client
	// Namespace that agents publish in.
	Namespace string
	// Silence reports whether a node's agent is silent, and if not, how long it takes
	// until it would be.
	Silence func(node string) (silent bool, left time.Duration)

	// withdrawn holds the silent nodes whose capacities are deleted. There is one worker.
	withdrawn map[string]bool
}

// lookForSilence is the interval at which a node with a silent agent is looked at: the
// agent may have come back.
const lookForSilence = 20 * time.Second

// SetupWithManager adds the reconciler. It has one worker, which withdrawn relies on. Every
// node with a report is looked at again when its agent would be silent.
func (r *Capacities) SetupWithManager(m ctrl.Manager) error {
	comes := predicate.Funcs{
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
	return ctrl.NewControllerManagedBy(m).Named("capacity").
		For(&v1alpha1.StorageNode{}, builder.WithPredicates(comes)).
		Complete(r)
}

// Reconcile deletes a node's capacities once each time that its agent falls silent. The
// capacities of a node without a report go with the report, which owns them.
func (r *Capacities) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := request.Name
	if err := r.Client.Get(ctx, types.NamespacedName{Name: node}, &v1alpha1.StorageNode{}, client.UnsafeDisableDeepCopy); err != nil {
		delete(r.withdrawn, node)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	silent, left := r.Silence(node)
	if !silent {
		delete(r.withdrawn, node)
		return ctrl.Result{RequeueAfter: left + time.Second}, nil
	}
	if r.withdrawn[node] {
		return ctrl.Result{RequeueAfter: lookForSilence}, nil
	}
	of := client.MatchingLabels(r.Driver.CapacityLabels(node))
	if err := r.Client.DeleteAllOf(ctx, &storagev1.CSIStorageCapacity{}, client.InNamespace(r.Namespace), of); err != nil {
		return ctrl.Result{}, fmt.Errorf("withdrawing the capacities of node %s: %w", node, err)
	}
	if r.withdrawn == nil {
		r.withdrawn = map[string]bool{}
	}
	r.withdrawn[node] = true
	log.FromContext(ctx).Info("withdrew the capacities of a node whose agent is silent", "node", node)
	return ctrl.Result{RequeueAfter: lookForSilence}, nil
}
