package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/report"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/driver"
)

const (
	// firstReport is how long publishing and registration wait for the pools, so that a
	// restart does not show as an outage.
	firstReport = 30 * time.Second
)

// runCluster sets the cluster half up and runs it until it fails or ctx ends.
func (a *Agent) runCluster(ctx context.Context) error {
	o := a.options
	watched, err := cacheOptions(o.Driver, o.Node, o.Namespace)
	if err != nil {
		return err
	}
	m, err := a.newManager(a.copies.watches(watched))
	if err != nil {
		return fmt.Errorf("setting up the API client: %w", err)
	}
	manager := entries.FieldManager(o.Node)
	volumes, err := m.GetCache().GetInformer(ctx, &v1alpha1.Volume{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watching volumes: %w", err)
	}
	revisions := report.NewRevisions(o.Node, storeRevision(volumes))
	// The node has one report, and its pools are shared: here the Volumes of all drivers count.
	objects := report.NewObjects(o.Node, o.Namespace, m.GetClient(), manager, a.unaccounted, revisions)
	publisher := report.New(o.Node, o.Namespace, objects, a.observer.Latest, o.Clock, o.Log.WithName("report"))
	publisher.Driver, publisher.OrphanRetention = o.Driver, o.OrphanRetention
	if err := watch(ctx, m.GetCache(), publisher, revisions); err != nil {
		return err
	}
	if err := a.addReplicas(m, publisher.Poke); err != nil {
		return fmt.Errorf("setting up the replica worker: %w", err)
	}
	if err := a.addSnapshots(ctx, m, publisher.Poke); err != nil {
		return fmt.Errorf("setting up the snapshot worker: %w", err)
	}
	if err := a.addTrimmer(m); err != nil {
		return fmt.Errorf("setting up the trimmer: %w", err)
	}
	pools, err := a.addManager(ctx, m, publisher.Poke)
	if err != nil {
		return fmt.Errorf("setting up the manager of pools: %w", err)
	}
	objects.Standings = pools.Standings
	heartbeat := report.NewHeartbeat(objects, o.Clock, o.Log.WithName("heartbeat"))
	err = errors.Join(
		m.Add(runnable(heartbeat.Start)),
		m.Add(runnable(func(ctx context.Context) error {
			if err := a.inherit(ctx, objects); err != nil {
				return err
			}
			return a.publish(ctx, publisher)
		})),
		m.Add(runnable(func(ctx context.Context) error { return a.sweepInline(ctx, m.GetAPIReader()) })),
	)
	if err != nil {
		return err
	}
	own := a.options.Driver.View(m.GetClient())
	a.wishes.use(own)
	a.offers.use(m.GetCache())
	if err := a.copies.watch(ctx, m.GetCache(), own); err != nil {
		return err
	}
	return m.Start(ctx)
}

// inherit takes over the orphans that an earlier run of the agent left in the StorageNode.
func (a *Agent) inherit(ctx context.Context, objects *report.Objects) error {
	n, err := objects.StorageNode(ctx)
	if err != nil {
		return fmt.Errorf("reading the report of an earlier life: %w", err)
	}
	volumes, snapshots := report.Orphans(n)
	a.orphans.Inherit(volumes)
	a.orphanSnapshots.Inherit(snapshots)
	return nil
}

// publish runs the publisher and tells it of every report.
func (a *Agent) publish(ctx context.Context, p *report.Publisher) error {
	reports, done := a.observer.Subscribe()
	defer done()
	if a.awaitReport(ctx); ctx.Err() != nil {
		return nil
	}
	var relay sync.WaitGroup
	defer relay.Wait()
	relay.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-reports:
				p.Poke()
			}
		}
	})
	return p.Start(ctx)
}

// api returns the kinds that agents know, and the way to the API server.
func (f *front) api() (*runtime.Scheme, *rest.Config, error) {
	scheme := runtime.NewScheme()
	api := rest.CopyConfig(f.options.Config)
	api.QPS = -1 // the API server has priority and fairness
	return scheme, api, errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
}

// live is a client that reads from no cache.
func (f *front) live() (client.Client, error) {
	scheme, api, err := f.api()
	if err != nil {
		return nil, err
	}
	c, err := client.New(api, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("setting up the API client: %w", err)
	}
	return c, nil
}

// newManager returns a manager that caches what is watched.
func (f *front) newManager(watched cache.Options) (ctrl.Manager, error) {
	scheme, api, err := f.api()
	if err != nil {
		return nil, err
	}
	return ctrl.NewManager(api, ctrl.Options{
		Scheme:  scheme,
		Logger:  f.options.Log,
		Cache:   watched,
		Metrics: server.Options{BindAddress: "0"}, // serveHTTP serves them
		Controller: config.Controller{
			SkipNameValidation: new(true), // the manager is made anew after a failure
			// Controllers wait for an API server that does not answer, however long.
			CacheSyncTimeout: 24 * time.Hour,
		},
	})
}

// cacheOptions names every kind that the agent caches, and selects only the objects that
// concern the node, so that the agent's cost does not grow with the cluster.
func cacheOptions(d driver.Driver, node, namespace string) (cache.Options, error) {
	here, err := labels.NewRequirement(v1alpha1.ReplicaLabel(node), selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("selecting the node's volumes: %w", err)
	}
	own := fields.OneTermEqualSelector(metav1.ObjectNameField, node)
	return cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Volume{}:        {Label: labels.NewSelector().Add(*here)},
			&v1alpha1.Snapshot{}:      {Label: labels.NewSelector().Add(*here)},
			&v1alpha1.StorageNode{}:   {Field: own},
			&v1alpha1.PoolClass{}:     {},
			&storagev1.StorageClass{}: {},
			nodeMetadata():            {Field: own},
			&storagev1.CSIStorageCapacity{}: {
				Namespaces: map[string]cache.Config{namespace: {}},
				Label:      report.OwnCapacities(d, node),
			},
		},
	}, nil
}

// watch starts the informers and connects the publisher to them.
func watch(ctx context.Context, c cache.Cache, p *report.Publisher, r *report.Revisions) error {
	poke := toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { p.Poke() },
		UpdateFunc: func(any, any) { p.Poke() },
		DeleteFunc: func(any) { p.Poke() },
	}
	// The replica worker has its own handler for everything else.
	deletion := toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) { r.Deleted(o); p.Poke() }}
	forget := toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { p.Forget() }}
	for object, handler := range map[client.Object]toolscache.ResourceEventHandler{
		&v1alpha1.Volume{}:              deletion,
		&v1alpha1.PoolClass{}:           poke,
		&storagev1.StorageClass{}:       poke,
		nodeMetadata():                  onNode(p.Poke),
		&v1alpha1.StorageNode{}:         forget,
		&storagev1.CSIStorageCapacity{}: forget,
	} {
		informer, err := c.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("listening to %T: %w", object, err)
		}
	}
	return nil
}

// storeRevision returns a function that tells up to which revision an informer's store has
// seen changes. The largest revision among the stored objects would not do: an object that
// was deleted while the watch was down has left the store.
func storeRevision(i cache.Informer) func() string {
	shared, ok := i.(toolscache.SharedIndexInformer)
	if !ok {
		return func() string { return "" }
	}
	return shared.GetStore().LastStoreSyncResourceVersion
}
