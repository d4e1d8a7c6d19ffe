package oversight

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

const (
	// workers is how many volumes are asked about at once: a node that fails may have owned hundreds.
	workers = 8
	// beat is how often the nodes are looked at: no event tells that one fell silent.
	beat = time.Second
)

// SetupWithManager adds the reconciler, the contact and the watch over silent nodes. They run whether or
// not the process leads.
func (r *Reconciler) SetupWithManager(m ctrl.Manager, ticks clock.WithTicker) error {
	if err := m.Add(r.Contact); err != nil {
		return err
	}
	troubled := make(chan event.GenericEvent)
	r.also = troubled
	if err := m.Add(&watchman{r: r, clock: ticks, troubled: troubled}); err != nil {
		return err
	}
	owned := predicate.NewPredicateFuncs(func(o client.Object) bool {
		v, ok := o.(*v1alpha1.Volume)
		return ok && recorded(v)
	})
	volumesOf := func(ctx context.Context, node client.Object) []reconcile.Request {
		return r.volumesOn(ctx, map[string]bool{node.GetName(): true})
	}
	says := predicate.NewPredicateFuncs(func(o client.Object) bool {
		n, ok := o.(*corev1.Node)
		return ok && speaks(n)
	})
	b := ctrl.NewControllerManagedBy(m).Named("oversight").
		WithOptions(controller.Options{
			NeedLeaderElection: new(false), MaxConcurrentReconciles: workers,
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, 5*time.Second),
		}).
		For(&v1alpha1.Volume{}, builder.WithPredicates(owned)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(volumesOf), builder.WithPredicates(says)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(volumesLabelled), builder.WithPredicates(relabelled)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.volumesOfPod)).
		WatchesRawSource(source.Channel(troubled, &handler.EnqueueRequestForObject{}))
	if r.Attacher != "" {
		attached := func(ctx context.Context, o client.Object) []reconcile.Request {
			return volumesAttached(ctx, r.Client, r.Attacher, o)
		}
		b.Watches(&storagev1.VolumeAttachment{}, handler.EnqueueRequestsFromMapFunc(attached))
	}
	return b.Complete(r)
}

// relabelled tells whether the labels of volumes on a Node have changed.
var relabelled = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool { return !maps.Equal(labelled(e.ObjectOld), labelled(e.ObjectNew)) },
	CreateFunc: func(e event.CreateEvent) bool { return len(labelled(e.Object)) > 0 },
	DeleteFunc: func(event.DeleteEvent) bool { return false },
}

// volumesLabelled are the volumes whose labels a Node has: another process may have set them by an older
// record.
func volumesLabelled(_ context.Context, node client.Object) (requests []reconcile.Request) {
	for volume := range labelled(node) {
		requests = append(requests, named(volume))
	}
	return requests
}

// volumesOn are the volumes that have a replica or their primary on one of the nodes.
func (r *Reconciler) volumesOn(ctx context.Context, nodes map[string]bool) (requests []reconcile.Request) {
	var list v1alpha1.VolumeList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has ended
	}
	for i := range list.Items {
		if o := list.Items[i].Status.Ownership; o != nil && concerns(o, nodes) {
			requests = append(requests, named(list.Items[i].Name))
		}
	}
	return requests
}

func concerns(o *v1alpha1.Ownership, nodes map[string]bool) bool {
	if nodes[o.Primary.Node] {
		return true
	}
	for i := range o.Replicas {
		if nodes[o.Replicas[i].Node] {
			return true
		}
	}
	return false
}

// volumesOfPod are the volumes of the claims that a pod uses. One that has no node yet may wait for the label
// of a volume.
func (r *Reconciler) volumesOfPod(ctx context.Context, o client.Object) (requests []reconcile.Request) {
	pod, ok := o.(*corev1.Pod)
	if !ok {
		return nil
	}
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		name := pod.Name + "-" + v.Name
		switch {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral == nil:
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		if r.Client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, claim, client.UnsafeDisableDeepCopy) != nil || claim.Spec.VolumeName == "" {
			continue
		}
		requests = append(requests, volumeBehind(ctx, r.Client, claim.Spec.VolumeName)...)
	}
	return requests
}

// volumesAttached is the volume of a VolumeAttachment of an attacher.
func volumesAttached(ctx context.Context, cached client.Reader, attacher string, o client.Object) []reconcile.Request {
	a, ok := o.(*storagev1.VolumeAttachment)
	if !ok || a.Spec.Attacher != attacher || a.Spec.Source.PersistentVolumeName == nil {
		return nil
	}
	return volumeBehind(ctx, cached, *a.Spec.Source.PersistentVolumeName)
}

// volumeBehind is the volume of a PersistentVolume, if it has one.
func volumeBehind(ctx context.Context, cached client.Reader, name string) []reconcile.Request {
	pv := &corev1.PersistentVolume{}
	if cached.Get(ctx, types.NamespacedName{Name: name}, pv, client.UnsafeDisableDeepCopy) != nil || pv.Spec.CSI == nil {
		return nil
	}
	return []reconcile.Request{named(pv.Spec.CSI.VolumeHandle)}
}

// watchman has the volumes of silent and suspected nodes looked at.
type watchman struct {
	r        *Reconciler
	clock    clock.WithTicker
	troubled chan<- event.GenericEvent
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*watchman) NeedLeaderElection() bool { return false }

// Start looks at the nodes until ctx ends.
func (w *watchman) Start(ctx context.Context) error {
	ticker := w.clock.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		case <-w.r.Stirred:
		}
		nodes := w.r.Contact.troubled(w.r.saidOfAll(ctx))
		if len(nodes) == 0 {
			continue
		}
		for _, request := range w.r.volumesOn(ctx, nodes) {
			select {
			case <-ctx.Done():
				return nil
			case w.troubled <- event.GenericEvent{Object: &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: request.Name}}}:
			}
		}
	}
}

// saidOfAll is what other witnesses say about each storage node, and about each node that only a record names.
func (r *Reconciler) saidOfAll(ctx context.Context) map[string][]ownership.Witness {
	var storage v1alpha1.StorageNodeList
	if err := r.Client.List(ctx, &storage, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has ended
	}
	said := map[string][]ownership.Witness{}
	for i := range storage.Items {
		said[storage.Items[i].Name] = r.say(ctx, storage.Items[i].Name)
	}
	var volumes v1alpha1.VolumeList
	if err := r.Client.List(ctx, &volumes, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has ended
	}
	for i := range volumes.Items {
		o := volumes.Items[i].Status.Ownership
		for j := 0; o != nil && j < len(o.Replicas); j++ {
			node := o.Replicas[j].Node
			if _, is := said[node]; !is {
				said[node] = r.say(ctx, node)
			}
		}
	}
	return said
}
