package agent

import (
	"context"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/replica"
	"berth.dev/berth/internal/provision"
)

const (
	// workers is how many replicas are worked on at once. A pool that hangs takes
	// as many as have work in it, each until its step times out.
	workers = 8
	// A step that failed is tried again after at least and at most this long.
	minRetry = 100 * time.Millisecond
	maxRetry = 30 * time.Second
	// sweepInterval is the least time between two sweeps.
	sweepInterval = time.Second
	// orphanInterval is how often a known orphan is looked at again.
	orphanInterval = 10 * time.Minute
)

// runnable is a part that runs once the caches are filled.
type runnable func(ctx context.Context) error

var _ manager.Runnable = runnable(nil)

func (f runnable) Start(ctx context.Context) error { return f(ctx) }

// addReplicas adds the replica worker with what feeds it.
func (a *Agent) addReplicas(m ctrl.Manager, poke func()) error {
	formatter := replica.NewFormatter(a.disks, a.locks)
	a.orphans.Notify(poke)
	worker := &replica.Worker{
		Node:        a.options.Node,
		Objects:     replica.NewCluster(a.options.Node, m.GetClient(), m.GetAPIReader()),
		Provisioner: a.disks,
		Locks:       a.locks,
		Format:      formatter.Enqueue,
		Refused:     poke,
		Listed:      a.listed,
		Orphans:     a.orphans,
	}
	swept := make(chan event.GenericEvent)
	if err := m.Add(runnable(formatter.Start)); err != nil {
		return err
	}
	if err := m.Add(runnable(func(ctx context.Context) error { return a.sweep(ctx, m.GetClient(), swept) })); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(m).
		Named("replicas").
		For(&v1alpha1.Volume{}).
		WatchesRawSource(source.Channel(swept, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetry, maxRetry),
		}).
		Complete(worker)
}

// listed says whether the latest report shows a volume. Before the first one
// every volume may be there.
func (a *Agent) listed(id string) bool {
	if a.reported() != nil {
		return true
	}
	return slices.ContainsFunc(a.observer.Latest().Pools, func(p provision.Pool) bool {
		return slices.ContainsFunc(p.Volumes, func(v provision.Volume) bool { return v.ID == id })
	})
}

// sweep sends the volumes that deserve a look after each report.
func (a *Agent) sweep(ctx context.Context, c client.Reader, swept chan<- event.GenericEvent) error {
	reports, done := a.observer.Subscribe()
	defer done()
	orphansSeen := a.options.Clock.Now()
	for {
		if err := a.reported(); err == nil {
			again := a.options.Clock.Since(orphansSeen) >= orphanInterval
			if again {
				orphansSeen = a.options.Clock.Now()
			}
			if err := a.sweepOnce(ctx, c, again, swept); err != nil {
				return err
			}
		}
		a.pause(ctx, sweepInterval)
		select {
		case <-ctx.Done():
			return nil
		case <-reports:
		}
	}
}

func (a *Agent) sweepOnce(ctx context.Context, c client.Reader, orphansToo bool, swept chan<- event.GenericEvent) error {
	var volumes v1alpha1.VolumeList
	if err := c.List(ctx, &volumes); err != nil {
		return err
	}
	snapshot := a.observer.Latest()
	if snapshot.Err != nil {
		return nil // what cannot be asked has not lost anything
	}
	known := a.orphans.All()
	for _, name := range replica.Stale(volumes.Items, a.options.Node, snapshot.Pools) {
		if _, orphan := known[name]; orphan && !orphansToo {
			continue
		}
		v := &v1alpha1.Volume{}
		v.Name = name
		select {
		case <-ctx.Done():
			return nil
		case swept <- event.GenericEvent{Object: v}:
		}
	}
	for name := range known {
		if !a.listed(name) {
			a.orphans.Forget(name)
		}
	}
	return nil
}
