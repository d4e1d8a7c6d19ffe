package upkeep

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase/luns"
)

// whenNamed lets changes through by which another object may come to name a disk, or may not do so any more.
var whenNamed = builder.WithPredicates(predicate.Funcs{
	UpdateFunc:  func(e event.UpdateEvent) bool { return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() },
	GenericFunc: func(event.GenericEvent) bool { return false },
})

// LUNs keeps the status of LUNs, and the finalizer of those that a volume has.
type LUNs struct {
	Client client.Client
	// Live confirms that a Volume is gone: its LUN then never goes to another one.
	Live client.Reader
}

// SetupWithManager adds the reconciler. Each LUN is looked at when a LUN or a Volume changes: what names the
// same disk is of another name.
func (r *LUNs) SetupWithManager(m ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request { return r.all(ctx) })
	return ctrl.NewControllerManagedBy(m).Named("lun").
		For(&v1alpha1.LUN{}).
		Watches(&v1alpha1.LUN{}, all, whenNamed).
		Watches(&v1alpha1.Volume{}, all, whenNamed).
		Complete(r)
}

func (r *LUNs) all(ctx context.Context) (requests []reconcile.Request) {
	var list v1alpha1.LUNList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has no other error than that it ends
	}
	for i := range list.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: list.Items[i].Name}})
	}
	return requests
}

// Reconcile makes at most one write: the event it causes brings the next.
func (r *LUNs) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	l := &v1alpha1.LUN{}
	if err := r.Client.Get(ctx, request.NamespacedName, l); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := r.tidy(ctx, l)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = nil // the cache is behind; its next event brings us back
	}
	return ctrl.Result{}, err
}

func (r *LUNs) tidy(ctx context.Context, l *v1alpha1.LUN) error {
	facts, err := r.facts(ctx, l)
	if err != nil {
		return err
	}
	next := luns.Judge(l, facts)
	held := next.State == v1alpha1.LUNBound
	switch {
	case held && l.DeletionTimestamp == nil && controllerutil.AddFinalizer(l, v1alpha1.LUNFinalizer):
		return r.write(ctx, l, "keeping LUN %s")
	case !equality.Semantic.DeepEqual(l.Status, next):
		l.Status = next
		if err := r.Client.Status().Update(ctx, l); err != nil {
			return fmt.Errorf("writing the status of LUN %s: %w", l.Name, err)
		}
	case !held && l.DeletionTimestamp != nil && controllerutil.RemoveFinalizer(l, v1alpha1.LUNFinalizer):
		return r.write(ctx, l, "letting LUN %s go")
	}
	return nil
}

func (r *LUNs) write(ctx context.Context, l *v1alpha1.LUN, doing string) error {
	if err := r.Client.Update(ctx, l); err != nil {
		return fmt.Errorf(doing+": %w", l.Name, err)
	}
	return nil
}

// facts are from the cache, but for the Volume that has the LUN: that is read again where the cache lacks it.
func (r *LUNs) facts(ctx context.Context, l *v1alpha1.LUN) (*luns.Facts, error) {
	var list v1alpha1.LUNList
	var all v1alpha1.VolumeList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing LUNs: %w", err)
	}
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing volumes: %w", err)
	}
	facts := &luns.Facts{LUNs: list.Items, Volumes: all.Items}
	if l.Status.Volume == nil {
		return facts, nil
	}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		v := &v1alpha1.Volume{}
		err := reader.Get(ctx, types.NamespacedName{Name: l.Status.Volume.Name}, v)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("reading volume %s: %w", l.Status.Volume.Name, err)
		}
		if err == nil && l.Has(v) {
			facts.Holder = v
			break
		}
	}
	return facts, nil
}
