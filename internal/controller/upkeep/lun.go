package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/usecase/luns"
)

// whenNamed lets changes through by which another object may come to name a disk, or may not do so any more, and
// the one by which a Volume has ended.
var whenNamed = builder.WithPredicates(predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || !ended(e.ObjectOld) && ended(e.ObjectNew)
	},
	GenericFunc: func(event.GenericEvent) bool { return false },
})

func ended(o client.Object) bool {
	v, ok := o.(*v1alpha1.Volume)
	return ok && v.DeletionTimestamp != nil && luns.Ended(v)
}

// LUNs keeps the status of LUNs, and the finalizer of those that a volume or a wipe has.
type LUNs struct {
	Driver driver.Driver
	Client client.Client
	// Live confirms what no later look takes back: that a Volume is gone, has ended, or that nothing names a
	// disk which a node is to wipe.
	Live  client.Reader
	Clock clock.PassiveClock
	// FreshID makes a random id for the epoch of a wipe.
	FreshID func() string
}

// wipesAgain is the interval at which a LUN is looked at that waits for a node: no event tells that a node has
// become free, or has gone.
const wipesAgain = 10 * time.Second

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
	if err == nil && l.Status.Wipe != nil {
		return ctrl.Result{RequeueAfter: wipesAgain}, nil
	}
	return ctrl.Result{}, err
}

func (r *LUNs) tidy(ctx context.Context, l *v1alpha1.LUN) error {
	next, err := r.judge(ctx, l, r.Client)
	if err != nil {
		return err
	}
	if luns.Destroys(&l.Status, &next) {
		if next, err = r.judge(ctx, l, r.Live); err != nil {
			return err
		}
	}
	held := next.State == v1alpha1.LUNBound || next.State == v1alpha1.LUNWiping
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

func (r *LUNs) judge(ctx context.Context, l *v1alpha1.LUN, from client.Reader) (v1alpha1.LUNStatus, error) {
	facts, err := r.facts(ctx, l, from)
	if err != nil {
		return v1alpha1.LUNStatus{}, err
	}
	return luns.Judge(l, facts), nil
}

func (r *LUNs) write(ctx context.Context, l *v1alpha1.LUN, doing string) error {
	if err := r.Client.Update(ctx, l); err != nil {
		return fmt.Errorf(doing+": %w", l.Name, err)
	}
	return nil
}

// facts come from a reader, but for nodes and PersistentVolumes, which come from the cache. The Volume that has
// the LUN is read again where the cache lacks it.
func (r *LUNs) facts(ctx context.Context, l *v1alpha1.LUN, from client.Reader) (*luns.Facts, error) {
	var list v1alpha1.LUNList
	var all v1alpha1.VolumeList
	if err := from.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing LUNs: %w", err)
	}
	if err := from.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing volumes: %w", err)
	}
	nodes, err := r.nodes(ctx, l)
	if err != nil {
		return nil, err
	}
	facts := &luns.Facts{LUNs: list.Items, Volumes: all.Items, Nodes: nodes, Now: r.Clock.Now(), FreshID: r.FreshID()}
	if l.Status.Volume == nil {
		return facts, nil
	}
	for _, reader := range []client.Reader{from, r.Live} {
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
	if facts.Holder != nil && facts.Holder.DeletionTimestamp != nil {
		facts.Retained, err = r.retained(ctx, facts.Holder)
	}
	return facts, err
}

// retained says whether a PersistentVolume that stands for a Volume keeps the data. Which those are is known
// from the cache, and what each says is read from the API server.
func (r *LUNs) retained(ctx context.Context, v *v1alpha1.Volume) (bool, error) {
	var list corev1.PersistentVolumeList
	if err := r.Client.List(ctx, &list, client.MatchingFields{HandleIndex: v.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	for i := range list.Items {
		pv := &corev1.PersistentVolume{}
		err := r.Live.Get(ctx, types.NamespacedName{Name: list.Items[i].Name}, pv)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return false, fmt.Errorf("reading PersistentVolume %s: %w", list.Items[i].Name, err)
		case err == nil && pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
			return true, nil
		}
	}
	return false, nil
}

// nodes are those of the cluster, for a LUN whose disk is to be wiped.
func (r *LUNs) nodes(ctx context.Context, l *v1alpha1.LUN) (out []luns.Node, err error) {
	if l.Status.Wipe == nil {
		return nil, nil
	}
	var nodes corev1.NodeList
	var drivers storagev1.CSINodeList
	if err := errors.Join(r.Client.List(ctx, &nodes, client.UnsafeDisableDeepCopy), r.Client.List(ctx, &drivers, client.UnsafeDisableDeepCopy)); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	serves := map[string]bool{}
	for i := range drivers.Items {
		serves[drivers.Items[i].Name] = slices.ContainsFunc(drivers.Items[i].Spec.Drivers, func(d storagev1.CSINodeDriver) bool { return d.Name == r.Driver.Name })
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		out = append(out, luns.Node{
			Name: n.Name, Fits: ready && serves[n.Name] && !n.Spec.Unschedulable,
			OutOfService: slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }),
		})
	}
	return out, nil
}
