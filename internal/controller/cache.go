package controller

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/certificates"
	"berth.dev/berth/internal/controller/cut"
	"berth.dev/berth/internal/controller/heartbeat"
	"berth.dev/berth/internal/controller/upkeep"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/usecase/snapshots"
)

// cacheOptions names every kind that is cached. Reading another one through the
// cache is an error and not a new watch on the whole cluster.
func cacheOptions(o Options) cache.Options {
	options := cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Volume{}:        {},
			&v1alpha1.Snapshot{}:      {},
			&v1alpha1.StorageNode{}:   {},
			&v1alpha1.PoolClass{}:     {},
			&storagev1.StorageClass{}: {},
			&coordinationv1.Lease{}: {
				Namespaces: map[string]cache.Config{o.Namespace: {}},
			},
		},
	}
	for kind, transform := range cut.Foreign(o.Driver, o.Extender.Listener != nil || o.Driver.Epochs()) {
		if _, is := kind.(*storagev1.VolumeAttachment); !is || o.Attachments {
			options.ByObject[kind] = cache.ByObject{Transform: transform}
		}
	}
	if o.Nodes.Installation != "" {
		options.ByObject[&certificatesv1.CertificateSigningRequest{}] = certificates.Requests()
	}
	if o.Driver.Epochs() {
		options.ByObject[&storagev1.CSINode{}] = cache.ByObject{}
		options.ByObject[&v1alpha1.LUN{}] = cache.ByObject{}
	}
	return options
}

// watch starts the informers, connects the heartbeats and the snapshot watchers to
// them, and returns the informers that feed the ledger.
func watch(ctx context.Context, m ctrl.Manager, d driver.Driver, beats *heartbeat.Heartbeats, taken *snapshots.Watchers) (from schedule.Informers, err error) {
	from.Driver, from.Heartbeats = d, beats
	for _, each := range []struct {
		object   client.Object
		informer *schedule.Informer
		listener toolscache.ResourceEventHandler
	}{
		{object: &corev1.Node{}, listener: beats.NodeHandler()},
		{object: &coordinationv1.Lease{}, listener: beats.LeaseHandler()},
		{object: &v1alpha1.Snapshot{}, listener: taken.Handler()},
		{object: &v1alpha1.Volume{}, informer: &from.Volumes},
		{object: &v1alpha1.StorageNode{}, informer: &from.StorageNodes},
		{object: &v1alpha1.PoolClass{}, informer: &from.PoolClasses},
		{object: &corev1.PersistentVolume{}, informer: &from.PersistentVolumes},
		{object: &corev1.PersistentVolumeClaim{}, informer: &from.Claims},
		{object: &corev1.Pod{}, informer: &from.Pods},
		{object: &storagev1.StorageClass{}, informer: &from.StorageClasses},
	} {
		informer, err := m.GetCache().GetInformer(ctx, each.object)
		if err != nil {
			return from, fmt.Errorf("watching %T: %w", each.object, err)
		}
		if each.informer != nil {
			*each.informer = informer
			continue
		}
		registration, err := informer.AddEventHandler(each.listener)
		if err != nil {
			return from, fmt.Errorf("listening to %T: %w", each.object, err)
		}
		from.Heard = append(from.Heard, registration.HasSynced)
	}
	if err := m.GetFieldIndexer().IndexField(ctx, &corev1.PersistentVolume{}, upkeep.HandleIndex, upkeep.Handles(d)); err != nil {
		return from, fmt.Errorf("indexing PersistentVolumes: %w", err)
	}
	return from, nil
}
