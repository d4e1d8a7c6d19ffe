package wire

import (
	"context"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/heartbeat"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/usecase/volumes"
)

// fieldOwner of the fields that the scheduler writes.
const fieldOwner = "berth-scheduler"

// served is the driver whose volumes the scheduler places.
var served = driver.Local()

// shared is the state that the plugins of all profiles have in common.
type shared struct {
	namespace string
	book      *schedule.Book
	reader    schedule.Reader
	volumes   *volumes.Service
	placed    func(ctx context.Context, volume string) ([]string, error)
	waker     *waker
}

// share sets everything up. It runs until ctx ends, and begins to work when the
// scheduler starts its informers.
func share(ctx context.Context, namespace string, handle fwk.Handle, fail func(error)) (*shared, error) {
	berth, err := connect(handle.KubeConfig(), namespace)
	if err != nil {
		return nil, err
	}
	factory := handle.SharedInformerFactory()
	beats, watchers, book := heartbeat.New(clock.RealClock{}), &volumes.Watchers{}, schedule.NewBook()
	from, err := berth.feeds(ctx, factory, beats)
	if err != nil {
		return nil, err
	}
	s := &shared{
		namespace: namespace,
		book:      book,
		reader: schedule.Reader{Driver: served, Objects: schedule.Listed{
			Claims:            factory.Core().V1().PersistentVolumeClaims().Lister(),
			PersistentVolumes: factory.Core().V1().PersistentVolumes().Lister(),
			StorageClasses:    factory.Storage().V1().StorageClasses().Lister(),
			Volumes:           berth.client,
			Snapshots:         berth.snapshots.reader,
		}},
		volumes: volumes.New(berth.client, berth.live, beats, book, watchers),
		placed:  berth.placed,
	}
	s.waker = newWaker(book, s.reader, clock.RealClock{})
	s.waker.refusals.Exists = exists(factory.Core().V1().Pods().Lister())
	berth.snapshots.changed = s.waker.sourced
	s.waker.watch(&from)
	from.Volumes = schedule.After(from.Volumes, watchers.Handler())
	from.Clock, from.Log = clock.RealClock{}, klog.FromContext(ctx).WithName("ledger")
	s.start(ctx, berth, from, fail)
	return s, nil
}

// exists is whether a pod, and not another of its name, is there still.
func exists(pods corelisters.PodLister) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		now, err := pods.Pods(pod.Namespace).Get(pod.Name)
		return err == nil && now.UID == pod.UID
	}
}

// start starts the goroutines. None of them ends before ctx, unless it fails.
func (s *shared) start(ctx context.Context, berth *cluster, from schedule.Informers, fail func(error)) {
	run := func(what string, work func(context.Context) error) {
		go func() {
			if err := work(ctx); err != nil && ctx.Err() == nil {
				fail(fmt.Errorf("%s: %w", what, err))
			}
		}()
	}
	run("watching Berth's objects", berth.cache.Start)
	run("feeding the ledger", func(ctx context.Context) error { return schedule.Feed(ctx, s.book, from) })
	run("watching snapshots", func(ctx context.Context) error { return berth.snapshots.follow(ctx, clock.RealClock{}) })
	run("waking pods", func(ctx context.Context) error {
		if err := s.book.WaitSynced(ctx); err != nil {
			return err
		}
		s.waker.everything()
		s.waker.run(ctx)
		return nil
	})
}

// cluster is Berth's side of the API server.
type cluster struct {
	cache  cache.Cache
	client client.Client
	live   client.Reader
	// snapshots are in a cache of their own: a lookup of kinds that the cluster may
	// not know must not delay the readers of volumes.
	snapshots *snapshots
}

// connect uses the scheduler's connection.
func connect(config *rest.Config, namespace string) (*cluster, error) {
	config = talk(config)
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	objects, err := cache.New(config, cache.Options{
		Scheme:                      scheme,
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&v1alpha1.Volume{}: {}, &v1alpha1.StorageNode{}: {}, &v1alpha1.PoolClass{}: {},
			&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{namespace: {}}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	taken, err := cache.New(config, cache.Options{Scheme: scheme, ReaderFailOnMissingInformer: true, DefaultTransform: cutSnapshot})
	if err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	live, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	cached, err := client.New(config, client.Options{Scheme: scheme, Cache: &client.CacheOptions{Reader: objects}})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &cluster{cache: objects, client: served.View(client.WithFieldOwner(cached, fieldOwner)), live: served.Live(live), snapshots: &snapshots{from: taken}}, nil
}

// talk lets each kind have its own encoding: protobuf for Kubernetes' own, among
// them the Leases that every agent renews again and again, and JSON for custom
// resources, which know nothing else. The scheduler's connection is set to protobuf
// alone.
func talk(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = "", ""
	config.QPS = -1 // the server has priority and fairness
	return config
}

// placed are the nodes that a Volume was placed on.
func (c *cluster) placed(ctx context.Context, name string) ([]string, error) {
	v, err := schedule.Cached{Reader: c.client}.Volume(ctx, name)
	if v == nil || err != nil {
		return nil, err
	}
	var nodes []string
	for _, replica := range v.Spec.Replicas {
		nodes = append(nodes, replica.Node)
	}
	return nodes, nil
}

// feeds are the informers that feed the ledger, with the heartbeats listening.
func (c *cluster) feeds(ctx context.Context, factory informers.SharedInformerFactory, beats *heartbeat.Heartbeats) (schedule.Informers, error) {
	core := factory.Core().V1()
	from := schedule.Informers{
		Driver: served,
		Claims: core.PersistentVolumeClaims().Informer(), PersistentVolumes: core.PersistentVolumes().Informer(),
		Pods: core.Pods().Informer(), StorageClasses: factory.Storage().V1().StorageClasses().Informer(),
		Heartbeats: beats,
	}
	var leases schedule.Informer
	for object, into := range map[client.Object]*schedule.Informer{
		&v1alpha1.Volume{}: &from.Volumes, &v1alpha1.StorageNode{}: &from.StorageNodes, &v1alpha1.PoolClass{}: &from.PoolClasses,
		&coordinationv1.Lease{}: &leases,
	} {
		informer, err := c.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err != nil {
			return from, fmt.Errorf("watching %T: is Berth installed? %w", object, err)
		}
		*into = informer
	}
	for informer, handler := range map[schedule.Informer]toolscache.ResourceEventHandler{
		core.Nodes().Informer(): beats.NodeHandler(), leases: beats.LeaseHandler(),
	} {
		registration, err := informer.AddEventHandler(handler)
		if err != nil {
			return from, fmt.Errorf("listening to heartbeats: %w", err)
		}
		from.Heard = append(from.Heard, registration.HasSynced)
	}
	return from, nil
}
