package controller

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/heartbeat"
	"berth.dev/berth/internal/controller/upkeep"
	"berth.dev/berth/internal/controller/volumes"
)

// cacheOptions names every kind that is cached. Reading another one through the
// cache is an error and not a new watch on the whole cluster.
func cacheOptions(namespace string) cache.Options {
	return cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Volume{}:         {},
			&v1alpha1.StorageNode{}:    {},
			&v1alpha1.PoolClass{}:      {},
			&corev1.Node{}:             {Transform: cutNode},
			&corev1.PersistentVolume{}: {Transform: cutPersistentVolume},
			&coordinationv1.Lease{}: {
				Namespaces: map[string]cache.Config{namespace: {}},
			},
		},
	}
}

// cutNode keeps the name and whether the Node is ready.
func cutNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	cut := &corev1.Node{ObjectMeta: identity(node)}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			cut.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return cut, nil
}

// cutPersistentVolume keeps the name and the volume that it refers to.
func cutPersistentVolume(obj any) (any, error) {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok {
		return obj, nil
	}
	cut := &corev1.PersistentVolume{ObjectMeta: identity(pv)}
	if csi := pv.Spec.CSI; csi != nil {
		cut.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: csi.Driver, VolumeHandle: csi.VolumeHandle}
	}
	return cut, nil
}

func identity(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(), DeletionTimestamp: o.GetDeletionTimestamp()}
}

// watch starts the informers and connects those who listen to them. heard tells
// whether the listeners were told of everything that was there at the start.
func watch(ctx context.Context, m ctrl.Manager, watchers *volumes.Watchers, beats *heartbeat.Heartbeats) (heard []toolscache.InformerSynced, err error) {
	listeners := map[client.Object]toolscache.ResourceEventHandler{
		&v1alpha1.Volume{}:         watchers.Handler(),
		&corev1.Node{}:             beats.NodeHandler(),
		&coordinationv1.Lease{}:    beats.LeaseHandler(),
		&v1alpha1.StorageNode{}:    nil,
		&v1alpha1.PoolClass{}:      nil,
		&corev1.PersistentVolume{}: nil,
	}
	for object, listener := range listeners {
		informer, err := m.GetCache().GetInformer(ctx, object)
		if err != nil {
			return nil, fmt.Errorf("watching %T: %w", object, err)
		}
		if listener == nil {
			continue
		}
		registration, err := informer.AddEventHandler(listener)
		if err != nil {
			return nil, fmt.Errorf("listening to %T: %w", object, err)
		}
		heard = append(heard, registration.HasSynced)
	}
	if err := m.GetFieldIndexer().IndexField(ctx, &corev1.PersistentVolume{}, upkeep.HandleIndex, upkeep.Handle); err != nil {
		return nil, fmt.Errorf("indexing PersistentVolumes: %w", err)
	}
	return heard, nil
}
