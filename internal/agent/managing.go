package agent

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/manage"
	"berth.dev/berth/internal/agent/report"
	"berth.dev/berth/internal/decide/wish"
	"berth.dev/berth/internal/signal"
)

// addManager adds the worker that has pools made and extended as classes ask for it.
func (a *Agent) addManager(ctx context.Context, m ctrl.Manager, told func()) (*manage.Worker, error) {
	worker := &manage.Worker{
		Manager: a.disks, Told: told, Clock: a.options.Clock, Log: a.options.Log.WithName("manage"),
		Facts: func(ctx context.Context) (wish.Facts, error) { return a.managed(ctx, m.GetClient()) },
	}
	// A round after each report would be enough. The watches save a user who writes a class
	// the wait for the next report.
	asked := signal.New()
	changed := toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { asked.Set() }, UpdateFunc: func(any, any) { asked.Set() }, DeleteFunc: func(any) { asked.Set() },
	}
	for o, handler := range map[client.Object]toolscache.ResourceEventHandler{
		&v1alpha1.PoolClass{}: changed, &v1alpha1.StorageNode{}: changed, nodeMetadata(): onNode(asked.Set),
	} {
		informer, err := m.GetCache().GetInformer(ctx, o, cache.BlockUntilSynced(false))
		if err != nil {
			return nil, fmt.Errorf("watching %T: %w", o, err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return nil, fmt.Errorf("listening to %T: %w", o, err)
		}
	}
	return worker, m.Add(runnable(func(ctx context.Context) error { return a.manage(ctx, worker, asked) }))
}

// manage lets the worker do a round after each report of the pools, and after each signal
// on asked.
func (a *Agent) manage(ctx context.Context, worker *manage.Worker, asked <-chan struct{}) error {
	reports, done := a.observer.Subscribe()
	defer done()
	for {
		if a.observer.Latest().Err == nil {
			if err := worker.Round(ctx); err != nil && ctx.Err() == nil {
				return fmt.Errorf("managing pools: %w", err)
			}
		}
		a.pause(ctx, sweepInterval)
		select {
		case <-ctx.Done():
			return nil
		case <-reports:
		case <-asked:
		}
	}
}

// managed collects the facts for the worker. They are empty if the Node is gone: then no
// pool is asked for. A pool that holds only volumes of other drivers must not be made anew either:
// the Volumes of all drivers count.
func (a *Agent) managed(ctx context.Context, watched client.Reader) (f wish.Facts, err error) {
	node := nodeMetadata()
	if err := watched.Get(ctx, client.ObjectKey{Name: a.options.Node}, node); err != nil {
		return f, client.IgnoreNotFound(err)
	}
	var (
		classes v1alpha1.PoolClassList
		volumes v1alpha1.VolumeList
		self    v1alpha1.StorageNode
	)
	for _, list := range []client.ObjectList{&classes, &volumes} {
		if err := watched.List(ctx, list); err != nil {
			return f, fmt.Errorf("listing what is watched: %w", err)
		}
	}
	if err := watched.Get(ctx, client.ObjectKey{Name: a.options.Node}, &self); err != nil && !apierrors.IsNotFound(err) {
		return f, fmt.Errorf("reading the last report: %w", err)
	}
	f = wish.Facts{
		Classes: classes.Items, Labels: node.GetLabels(), Pools: a.observer.Latest().Pools,
		Listed: report.ExpectedPools(volumes.Items, a.options.Node),
	}
	for _, p := range self.Status.Pools {
		f.Listed = append(f.Listed, p.Name)
	}
	return f, nil
}
