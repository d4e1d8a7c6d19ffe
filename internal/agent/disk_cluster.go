package agent

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orders"
	"berth.dev/berth/internal/agent/released"
)

// runCluster watches the driver's Volumes and this node's Node until it fails or ctx ends.
func (a *DiskAgent) runCluster(ctx context.Context) error {
	o := a.options
	m, err := a.newManager(cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			// A node learns of a volume from its record: an attachment has no label.
			&v1alpha1.Volume{}: {Field: fields.OneTermEqualSelector("spec.driver", o.Driver.Name)},
			&v1alpha1.LUN{}:    {},
			// The answers to this node's orders.
			&v1alpha1.StorageNode{}: {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, o.Node), Transform: ordersAlone},
			&corev1.Node{}:          {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, o.Node), Transform: taintsAlone},
		},
	})
	if err != nil {
		return fmt.Errorf("setting up the API client: %w", err)
	}
	for object, seen := range map[client.Object]func(object any){&v1alpha1.Volume{}: a.seen, &corev1.Node{}: a.seenNode} {
		informer, err := m.GetCache().GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: seen, UpdateFunc: func(_, now any) { seen(now) }, DeleteFunc: seen,
		}); err != nil {
			return fmt.Errorf("listening to %T: %w", object, err)
		}
	}
	if err := a.hearAnswers(ctx, m.GetCache()); err != nil {
		return err
	}
	if err := a.addWiper(m); err != nil {
		return fmt.Errorf("setting up the wiper of LUNs: %w", err)
	}
	a.wishes.use(o.Driver.View(m.GetClient()))
	return m.Start(ctx)
}

// hearAnswers has a volume tended whose order to the controllers has its answer.
func (a *DiskAgent) hearAnswers(ctx context.Context, of cache.Cache) error {
	informer, err := of.GetInformer(ctx, &v1alpha1.StorageNode{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching this node's StorageNode: %w", err)
	}
	changed := func(old, now any) {
		before, _ := old.(*v1alpha1.StorageNode)
		after, _ := now.(*v1alpha1.StorageNode)
		for _, volume := range orders.Changed(before, after) {
			a.loop.Poke(volume, 0)
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(now any) { changed(nil, now) }, UpdateFunc: changed, DeleteFunc: func(last any) { changed(last, nil) },
	})
	return err
}

// addWiper adds the wiper of those LUNs that a controller has ordered from this node. It wipes one at a time.
func (a *DiskAgent) addWiper(m ctrl.Manager) error {
	here := predicate.NewPredicateFuncs(func(o client.Object) bool {
		l, ok := o.(*v1alpha1.LUN)
		return ok && l.Status.Wipe != nil && l.Status.Wipe.Node == a.options.Node
	})
	log := a.options.Log.WithName("wiper")
	wiper := released.New(released.Config{
		Node: a.options.Node, Objects: released.Live{Reader: m.GetAPIReader(), Status: m.GetClient()}, Disks: a.disks, Machine: a.eraser,
		Clock: a.options.Clock, Log: log,
	})
	return ctrl.NewControllerManagedBy(m).Named("wiper").For(&v1alpha1.LUN{}, builder.WithPredicates(here)).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			after, err := wiper.Wipe(ctx, r.Name)
			if err != nil && ctx.Err() == nil {
				log.Info("wiping a disk failed, trying again", "lun", r.Name, "reason", err.Error())
			}
			return reconcile.Result{RequeueAfter: after}, nil
		}))
}

// ordersAlone drops all of a StorageNode but the node's orders.
func ordersAlone(object any) (any, error) {
	n, ok := object.(*v1alpha1.StorageNode)
	if !ok {
		return object, errors.New("this is no StorageNode")
	}
	return &v1alpha1.StorageNode{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion},
		Status:     v1alpha1.StorageNodeStatus{DiskOrders: n.Status.DiskOrders},
	}, nil
}

// taintsAlone drops all of a Node but its taints: the rest changes all the time.
func taintsAlone(object any) (any, error) {
	n, ok := object.(*corev1.Node)
	if !ok {
		return object, errors.New("this is no Node")
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion},
		Spec:       corev1.NodeSpec{Taints: n.Spec.Taints},
	}, nil
}
