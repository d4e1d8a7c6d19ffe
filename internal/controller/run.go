package controller

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/go-logr/logr"
	csimetrics "github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/attacher"
	"berth.dev/berth/internal/controller/heartbeat"
	"berth.dev/berth/internal/controller/metrics"
	"berth.dev/berth/internal/controller/nodegone"
	"berth.dev/berth/internal/controller/notices"
	"berth.dev/berth/internal/controller/oversight"
	"berth.dev/berth/internal/controller/places"
	"berth.dev/berth/internal/controller/upkeep"
	"berth.dev/berth/internal/csi"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/usecase/luns"
	"berth.dev/berth/internal/usecase/snapshots"
	"berth.dev/berth/internal/usecase/volumes"
)

// OrphanDelay is how long a Volume without claim and PersistentVolume is left alone.
const OrphanDelay = 10 * time.Minute

// ReservationDelay is how long the controller leaves alone a Volume that a scheduler
// made while no node is selected for its claim.
const ReservationDelay = 2 * time.Minute

// Options of the process.
type Options struct {
	// Config of the API server. Its rate limit is not used: the API server has its
	// own priority and fairness.
	Config *rest.Config
	// Driver that the process serves.
	Driver driver.Driver
	// Namespace that Berth is installed in.
	Namespace string
	// LeaderElection lets only one of several processes run the reconcilers.
	LeaderElection bool
	// CSI is the listener that the sidecars connect to.
	CSI net.Listener
	// HTTP serves /healthz, /readyz and /metrics.
	HTTP net.Listener
	// Extender serves a stock scheduler, if its Listener is set.
	Extender Extender
	// Nodes gives nodes their certificates, and asks them.
	Nodes Nodes
	// Snapshots announces snapshots, and volumes made from snapshots and volumes.
	Snapshots bool
	// Attachments announces that the controller publishes volumes: Kubernetes then makes a VolumeAttachment for
	// each pod's node. For a driver with epochs.
	Attachments bool
	// Clouds attach disks as nodes order them, by the scheme of their handles. For a driver with epochs.
	Clouds map[string]shared.Cloud
	// Version that CSI announces.
	Version string
	Log     logr.Logger
	Clock   Clock
	// Peers, Witnesses and Places are what the oversight of volumes with epochs asks; see there. Where Nodes
	// has an installation, the process asks the nodes itself. Places replaces what the process knows from its
	// caches, for tests.
	Peers     oversight.Peers
	Witnesses oversight.Witnesses
	Places    oversight.Places
	// Stirred says that what Witnesses say may have changed; nil never does.
	Stirred <-chan struct{}
	// OrphanDelay replaces the constant of that name, if it is set.
	OrphanDelay time.Duration
	// Wrap, if set, is put around the client that writes. For tests.
	Wrap func(client.Client) client.Client
}

// Clock is the only source of time for the process.
type Clock interface {
	clock.WithTicker
	clock.WithDelayedExecution
}

// Process is a controller that is set up and not started yet.
type Process struct {
	// Volumes are the use cases behind CSI. They work while Run runs.
	Volumes   *volumes.Service
	Snapshots *snapshots.Service
	// LUNs are the use cases in place of Volumes where volumes are shared disks; nil elsewhere.
	LUNs *luns.Service
	// Oversight of the driver's volumes with epochs; nil if it has none.
	Oversight *oversight.Reconciler
	// Book is the ledger that Volumes and Snapshots decide by.
	Book *schedule.Book
	// Synced is closed when Volumes and Snapshots work.
	Synced  <-chan struct{}
	manager ctrl.Manager
}

// Run serves until ctx ends.
func Run(ctx context.Context, o Options) error {
	p, err := New(ctx, o)
	if err != nil {
		return fmt.Errorf("setting up: %w", err)
	}
	return p.Run(ctx)
}

// Run serves until ctx ends.
func (p *Process) Run(ctx context.Context) error { return p.manager.Start(ctx) }

// New puts the parts together.
func New(ctx context.Context, o Options) (*Process, error) {
	m, err := newManager(o)
	if err != nil {
		return nil, err
	}
	beats, watchers, book := heartbeat.New(o.Clock), &volumes.Watchers{}, schedule.NewBook()
	taken := &snapshots.Watchers{}
	from, err := watch(ctx, m, o.Driver, beats, taken)
	if err != nil {
		return nil, err
	}
	from.Volumes = schedule.After(from.Volumes, watchers.Handler())
	from.Clock, from.Log = o.Clock, o.Log.WithName("ledger")
	shown := prometheus.NewRegistry()
	if err := addNodes(ctx, m, &o, shown); err != nil {
		return nil, err
	}
	overseer, err := addOversight(ctx, m, o)
	if err := errors.Join(addReconcilers(m, o, beats), addAttachers(m, o), err); err != nil {
		return nil, err
	}
	if o.Extender.Listener != nil {
		holds, err := addExtender(ctx, m, o.Driver, o.Extender, book, o.Clock)
		if err != nil {
			return nil, err
		}
		from.Claims = schedule.After(from.Claims, holds.Handler())
	}
	own, live := o.Driver.View(m.GetClient()), o.Driver.Live(m.GetAPIReader())
	p := &Process{
		manager: m, Book: book, Oversight: overseer,
		Volumes:   volumes.New(own, live, beats, book, watchers),
		Snapshots: snapshots.New(own, live, beats, book, taken),
	}
	if o.Driver.Epochs() {
		if _, err := m.GetCache().GetInformer(ctx, &v1alpha1.LUN{}); err != nil {
			return nil, fmt.Errorf("watching LUNs: %w", err)
		}
		p.LUNs = luns.New(own, live, p.Volumes, watchers)
	}
	feed := func(ctx context.Context) error { return schedule.Feed(ctx, book, from) }
	figures := &metrics.Cluster{Objects: own, Away: beats.Away, Nodes: o.Driver.Pools, Elected: m.Elected()}
	if overseer != nil {
		figures.Silences = overseer.Contact.Silences
	}
	shown.MustRegister(figures)
	return p, errors.Join(m.Add(everywhere(feed)), p.addServers(o, shown))
}

// addServers adds the CSI server and the HTTP server. The manager starts them after
// the caches. CSI calls are served once the ledger has seen all objects.
func (p *Process) addServers(o Options, shown prometheus.Gatherer) error {
	synced := make(chan struct{})
	p.Synced = synced
	counters := csimetrics.NewCSIMetricsManagerForPlugin(o.Driver.Name)
	service := csi.NewController(o.Driver, p.Volumes)
	if p.LUNs != nil {
		service = csi.NewController(o.Driver, p.LUNs)
	}
	if o.Snapshots {
		service = service.WithSnapshots(p.Snapshots)
	}
	if o.Attachments && p.Oversight != nil {
		service = service.WithAttachments(oversight.Wishes{Reconciler: p.Oversight})
	}
	face := &csi.Server{
		Services: []csi.Service{
			&csi.Identity{Driver: o.Driver, Version: o.Version, Ready: readiness(synced)},
			service,
		},
		Log:     o.Log.WithName("csi"),
		Metrics: counters,
	}
	serve := func(ctx context.Context) error {
		if err := p.Book.WaitSynced(ctx); err != nil {
			return nil //nolint:nilerr // the process was told to stop
		}
		close(synced)
		return face.Serve(ctx, o.CSI)
	}
	return errors.Join(
		p.manager.Add(everywhere(serve)),
		p.manager.Add(httpServer(o.HTTP, readiness(synced), counters.WithAdditionalRegistry(shown))),
	)
}

func newManager(o Options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	api := rest.CopyConfig(o.Config)
	api.QPS = -1
	return ctrl.NewManager(api, ctrl.Options{
		Scheme:                        scheme,
		Logger:                        o.Log,
		Cache:                         cacheOptions(o),
		Metrics:                       server.Options{BindAddress: "0"}, // httpServer has them
		LeaderElection:                o.LeaderElection,
		LeaderElectionID:              o.Driver.Controllers,
		LeaderElectionNamespace:       o.Namespace,
		LeaderElectionReleaseOnCancel: true,
		Controller:                    config.Controller{SkipNameValidation: new(true)},
		NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			c, err := client.New(config, options)
			if err != nil {
				return nil, err
			}
			c = client.WithFieldOwner(c, o.Driver.Controllers)
			if o.Wrap != nil {
				c = o.Wrap(c)
			}
			return c, nil
		},
	})
}

// addReconcilers adds what looks after the driver's own objects, and, in the controllers of the driver of
// pools, what there is one of in a cluster.
func addReconcilers(m ctrl.Manager, o Options, nodes *heartbeat.Heartbeats) error {
	c, live := o.Driver.View(m.GetClient()), o.Driver.Live(m.GetAPIReader())
	delay := o.OrphanDelay
	if delay == 0 {
		delay = OrphanDelay
	}
	own := errors.Join(
		(&upkeep.Volumes{Client: c, Live: live, Nodes: nodes, LUNs: o.Driver.Epochs()}).SetupWithManager(m),
		(&upkeep.Snapshots{Client: c, Live: live, Nodes: nodes}).SetupWithManager(m),
		(&upkeep.Claims{Driver: o.Driver, Client: c, Live: live, Clock: o.Clock, Delay: delay}).SetupWithManager(m),
	)
	if o.Driver.Epochs() {
		own = errors.Join(own, (&upkeep.LUNs{
			Driver: o.Driver, Client: c, Live: live, Clock: o.Clock, FreshID: func() string { return string(uuid.NewUUID()) },
		}).SetupWithManager(m))
	}
	if !o.Driver.Pools {
		return own
	}
	return errors.Join(own,
		(&upkeep.Reservations{Driver: o.Driver, Client: c, Live: live, Clock: o.Clock, Delay: ReservationDelay}).SetupWithManager(m),
		(&upkeep.StorageNodes{Client: c, Live: live}).SetupWithManager(m),
		(&upkeep.Capacities{Driver: o.Driver, Client: c, Namespace: o.Namespace, Silence: nodes.Silence}).SetupWithManager(m),
		(&upkeep.PoolClasses{Client: c}).SetupWithManager(m),
		(&nodegone.Reconciler{Driver: o.Driver, Client: m.GetClient(), Live: live, Clock: o.Clock, Instance: o.Driver.Controllers}).SetupWithManager(m),
		(&notices.Notices{Client: c, Clock: o.Clock, Instance: o.Driver.Controllers}).SetupWithManager(m),
	)
}

// addAttachers adds what carries out the orders of nodes at each cloud.
func addAttachers(m ctrl.Manager, o Options) error {
	for scheme, cloud := range o.Clouds {
		book := attacher.Objects{
			Cached: o.Driver.View(m.GetClient()), Live: o.Driver.Live(m.GetAPIReader()), Status: m.GetClient(), Scheme: scheme, Clock: o.Clock,
		}
		if err := attacher.New(cloud, book, o.Clock).SetupWithManager(m, scheme); err != nil {
			return fmt.Errorf("setting up the attacher of disks %s://: %w", scheme, err)
		}
	}
	return nil
}

// addOversight adds the oversight of volumes with epochs, if the driver has any. It runs in every process.
func addOversight(ctx context.Context, m ctrl.Manager, o Options) (*oversight.Reconciler, error) {
	if !o.Driver.Epochs() {
		return nil, nil
	}
	if o.Places == nil {
		known := places.New(o.Driver, o.Clock)
		if err := known.Listen(ctx, m.GetCache()); err != nil {
			return nil, err
		}
		o.Places = known
	}
	leases, err := client.NewWithWatch(m.GetConfig(), client.Options{HTTPClient: m.GetHTTPClient(), Scheme: m.GetScheme(), Mapper: m.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("making a client for leases: %w", err)
	}
	r := &oversight.Reconciler{
		Client: o.Driver.View(m.GetClient()), Live: o.Driver.Live(m.GetAPIReader()),
		Contact: &oversight.Contact{Leases: leases, Namespace: o.Namespace, Clock: o.Clock, Log: o.Log.WithName("contact")},
		Peers:   o.Peers, Witnesses: o.Witnesses, Places: o.Places, Stirred: o.Stirred,
		Leads: closed(m.Elected()), Clock: o.Clock, Rules: ownership.OverseeRules, Instance: o.Driver.Controllers,
		FreshID: func() string { return string(uuid.NewUUID()) },
	}
	if o.Attachments {
		r.Attacher = o.Driver.Name
	}
	return r, r.SetupWithManager(m, o.Clock)
}

// closed tells whether a channel is closed by now.
func closed(c <-chan struct{}) func() bool {
	return func() bool {
		select {
		case <-c:
			return true
		default:
			return false
		}
	}
}

// everywhere is a part that runs whether or not this process leads.
type everywhere func(ctx context.Context) error

var _ manager.LeaderElectionRunnable = everywhere(nil)

func (f everywhere) Start(ctx context.Context) error { return f(ctx) }
func (everywhere) NeedLeaderElection() bool          { return false }
