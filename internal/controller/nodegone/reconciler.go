package nodegone

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/decide/gone"
	"berth.dev/berth/internal/driver"
)

// Reconciler carries out what Decide says, node by node.
type Reconciler struct {
	// Driver whose claims are released.
	Driver driver.Driver
	// Client shows the Volumes of all drivers: each of them says that its node is gone.
	Client client.Client
	// Live reads the objects that decide, since a decision may delete a claim.
	Live  client.Reader
	Clock clock.PassiveClock
	// Instance is the name of this process, for events.
	Instance string

	// seen records since when this process sees nodes missing, by node and Volume. It has
	// no lock since there is one worker.
	seen map[string]map[types.UID]sight
}

// sight says since when this process sees an absence, and whether it saw the count begin.
type sight struct {
	since time.Time
	whole bool
}

// SetupWithManager adds the reconciler. It has one worker, which seen relies on.
func (r *Reconciler) SetupWithManager(m ctrl.Manager) error {
	comesOrGoes := predicate.Funcs{
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
	// A Volume is found by the label of its node, which may come later.
	placed := predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{})
	return ctrl.NewControllerManagedBy(m).Named("nodegone").
		For(&corev1.Node{}, builder.WithPredicates(comesOrGoes)).
		Watches(&v1alpha1.Volume{}, handler.EnqueueRequestsFromMapFunc(r.nodesOf), builder.WithPredicates(placed)).
		Watches(&v1alpha1.PoolClass{}, handler.EnqueueRequestsFromMapFunc(r.nodesOfClass), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Complete(r)
}

// nodesOf returns the nodes of a Volume that are gone, or all if the Volume has a mark.
func (r *Reconciler) nodesOf(ctx context.Context, o client.Object) []reconcile.Request {
	v, ok := o.(*v1alpha1.Volume)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, replica := range v.Spec.Replicas {
		if marked(v) || !r.known(ctx, replica.Node) {
			requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: replica.Node}})
		}
	}
	return requests
}

// nodesOfClass returns the gone nodes of a class's Volumes.
func (r *Reconciler) nodesOfClass(ctx context.Context, class client.Object) []reconcile.Request {
	var volumes v1alpha1.VolumeList
	if err := r.Client.List(ctx, &volumes, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has ended
	}
	found := map[string]bool{}
	var requests []reconcile.Request
	for i := range volumes.Items {
		v := &volumes.Items[i]
		for _, replica := range v.Spec.Replicas {
			if v.Spec.PoolClass == class.GetName() && !found[replica.Node] && !r.known(ctx, replica.Node) {
				found[replica.Node] = true
				requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: replica.Node}})
			}
		}
	}
	return requests
}

// known reports whether the watch shows a Node.
func (r *Reconciler) known(ctx context.Context, node string) bool {
	return r.Client.Get(ctx, types.NamespacedName{Name: node}, &corev1.Node{}) == nil
}

// Reconcile takes all steps that can be taken now about the Volumes of a node.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	node := request.Name
	volumes, err := r.concerned(ctx, node)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.forget(node, volumes)
	if len(volumes) == 0 {
		return ctrl.Result{}, nil
	}
	look, err := r.look(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	var next time.Duration
	var failed []error
	for i := range volumes {
		again, err := r.settle(ctx, node, volumes[i].Name, look)
		if again > 0 && (next == 0 || again < next) {
			next = again
		}
		failed = append(failed, err)
	}
	return ctrl.Result{RequeueAfter: next}, errors.Join(failed...)
}

// concerned returns the driver's Volumes of a node that may need a step: all of them if the
// node is gone, else those that have a mark.
func (r *Reconciler) concerned(ctx context.Context, node string) ([]v1alpha1.Volume, error) {
	var list v1alpha1.VolumeList
	if err := r.Client.List(ctx, &list, client.HasLabels{v1alpha1.ReplicaLabel(node)}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the volumes of node %s: %w", node, err)
	}
	known := r.known(ctx, node)
	var volumes []v1alpha1.Volume
	for i := range list.Items {
		if v := &list.Items[i]; r.Driver.Owns(v) && (!known || marked(v)) {
			volumes = append(volumes, *v)
		}
	}
	return volumes, nil
}

// steps bounds the steps of one call: a Volume that needs more of them is looked at again.
const steps = 8

// settle takes all steps that can be taken now about a Volume, and says when to look again.
func (r *Reconciler) settle(ctx context.Context, node, volume string, look Look) (time.Duration, error) {
	for range steps {
		f, err := r.gather(ctx, node, volume, look)
		if f == nil {
			return 0, err
		}
		a := gone.Decide(*f)
		if a.Verb == decide.None {
			return a.Again, nil
		}
		if err := r.take(ctx, f, a); err != nil {
			return 0, fmt.Errorf("volume %s of node %s, step %s: %w", volume, node, a.Verb, err)
		}
	}
	return gone.LookAgain, nil
}

// marked reports whether a Volume says that its node is gone, or may be.
func marked(v *v1alpha1.Volume) bool {
	m := gone.MarkOf(v)
	return m.Type != "" && m.Status != metav1.ConditionFalse
}

// forget drops the sights of Volumes that are no longer concerned.
func (r *Reconciler) forget(node string, volumes []v1alpha1.Volume) {
	old := r.seen[node]
	kept := map[types.UID]sight{}
	for i := range volumes {
		if s, ok := old[volumes[i].UID]; ok {
			kept[volumes[i].UID] = s
		}
	}
	if r.seen == nil {
		r.seen = map[string]map[types.UID]sight{}
	}
	if len(volumes) == 0 {
		delete(r.seen, node)
		return
	}
	r.seen[node] = kept
}
