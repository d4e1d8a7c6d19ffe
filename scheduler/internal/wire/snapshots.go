package wire

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/schedule"
)

// snapshots follows VolumeSnapshots and Berth's own Snapshots once the cluster
// knows the former: their definitions are not Berth's, and may come late or never.
type snapshots struct {
	from cache.Cache
	// changed is called after anything about them has changed.
	changed func()
	ready   atomic.Bool
}

// lookForSnapshots is how often follow checks whether the cluster knows them.
const lookForSnapshots = 10 * time.Second

// reader is where they are, or nil as long as not all of them were read.
func (s *snapshots) reader() client.Reader {
	if !s.ready.Load() {
		return nil
	}
	return s.from
}

// follow runs until ctx ends.
func (s *snapshots) follow(ctx context.Context, c clock.WithTicker) error {
	ticker := c.NewTicker(lookForSnapshots)
	defer ticker.Stop()
	ended := make(chan error, 1)
	go func() { ended <- s.from.Start(ctx) }()
	for {
		if err := s.begin(ctx); err != nil && !meta.IsNoMatchError(err) {
			klog.FromContext(ctx).Error(err, "looking for snapshots")
		}
		if s.ready.Load() {
			return <-ended
		}
		select {
		case err := <-ended:
			return err
		case <-ticker.C():
		}
	}
}

// begin reads them, and calls back with every change from then on. It fails if not
// all of their kinds are known, and then listens to nothing.
func (s *snapshots) begin(ctx context.Context) error {
	var informers []cache.Informer
	for _, object := range []client.Object{
		untyped(schedule.VolumeSnapshotKind), untyped(schedule.VolumeSnapshotContentKind), &v1alpha1.Snapshot{},
	} {
		informer, err := s.from.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %s: %w", object.GetObjectKind().GroupVersionKind().Kind, err)
		}
		informers = append(informers, informer)
	}
	changed := toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { s.changed() }, UpdateFunc: func(any, any) { s.changed() }, DeleteFunc: func(any) { s.changed() },
	}
	var heard []toolscache.InformerSynced
	for _, informer := range informers {
		registration, err := informer.AddEventHandler(changed)
		if err != nil {
			return fmt.Errorf("listening to snapshots: %w", err)
		}
		heard = append(heard, registration.HasSynced)
	}
	if toolscache.WaitForCacheSync(ctx.Done(), heard...) {
		s.ready.Store(true)
		s.changed()
	}
	return nil
}

func untyped(kind schema.GroupVersionKind) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	return o
}

// cutSnapshot keeps the fields of an object that are read.
func cutSnapshot(obj any) (any, error) {
	if o, ok := obj.(*unstructured.Unstructured); ok {
		return schedule.CutVolumeSnapshot(o), nil
	}
	return cache.TransformStripManagedFields()(obj)
}
