package agent

import (
	"context"
	"net"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	csimetrics "github.com/kubernetes-csi/csi-lib-utils/metrics"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/agent/metrics"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/agent/register"
	"berth.dev/berth/internal/csi"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/keyed"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/publish/health"
	"berth.dev/berth/internal/publish/inline"
	"berth.dev/berth/internal/publish/kubeletdir"
	"berth.dev/berth/internal/publish/staging"
)

// inlineMarks is the directory of the marks of a driver's inline volumes, in the driver's own
// directory below the kubelet's: the marks have to outlive the agent, as the pods do.
func inlineMarks(o Options) inline.MarkDir {
	return inline.MarkDir(filepath.Join(o.KubeletDir, "plugins", o.Driver.Name, "inline"))
}

// Options of the process.
type Options struct {
	// Driver that the agent serves.
	Driver driver.Driver
	// Node that the agent is for, and the namespace that Berth is installed in.
	Node, Namespace string
	// KubeletDir is the kubelet's directory; all paths of CSI calls lie below it.
	KubeletDir string
	// Disks of the node.
	Disks poold.Node
	// Mounts reads the mount table.
	Mounts staging.MountTable
	// Config of the API server.
	Config *rest.Config
	// CSI is where the kubelet connects; the address must be the path that the
	// kubelet sees.
	CSI net.Listener
	// RegistrationSocket is the socket to make in the kubelet's registry; empty for none.
	RegistrationSocket string
	// HTTP serves /healthz, /readyz and /metrics.
	HTTP net.Listener
	// Registry that /metrics serves, with the metrics that the caller has registered.
	Registry *prometheus.Registry
	// OrphanRetention is how long data without an object is kept; 0 is for ever.
	OrphanRetention time.Duration
	// Version that CSI announces.
	Version string
	Log     logr.Logger
	Clock   clock.WithTicker
}

// Agent is the process, set up and not started yet.
type Agent struct {
	options  Options
	disks    poold.Node
	locks    *keyed.Locks[string]
	observer *pools.Observer
	orphans  *orphans.Set // volumes
	wishes   *wishes
	register *register.Server
	offers   *offers
	inline   *inline.Service

	orphanSnapshots *orphans.Set
}

// New puts the parts together.
func New(o Options) *Agent {
	disks := metrics.NewOperations(o.Registry, o.Clock).Node(o.Disks)
	a := &Agent{
		options: o, disks: disks,
		locks: &keyed.Locks[string]{}, orphans: &orphans.Set{Now: o.Clock.Now}, orphanSnapshots: &orphans.Set{Now: o.Clock.Now}, wishes: &wishes{},
		observer: pools.NewObserver(disks, o.Clock, o.Log.WithName("pools")),
		register: &register.Server{
			Driver: o.Driver.Name, Endpoint: o.CSI.Addr().String(),
			Socket: o.RegistrationSocket, Clock: o.Clock, Log: o.Log.WithName("register"),
		},
	}
	a.offers = &offers{node: o.Node, observer: a.observer}
	a.inline = inline.New(inline.Config{
		Kubelet: kubeletdir.New(o.KubeletDir), Disks: disks, Offers: a.offers, Marks: inlineMarks(o),
		Mounts: o.Mounts, Locks: a.locks,
	})
	metrics.RegisterPools(o.Registry,
		func() ([]provision.Pool, error) { s := a.observer.Latest(); return s.Pools, s.Err },
		func() int { return len(a.orphans.All()) },
		func() int { return len(a.orphanSnapshots.All()) })
	return a
}

// Run serves until ctx ends or the local half fails.
func (a *Agent) Run(ctx context.Context) error {
	o := a.options
	counters := csimetrics.NewCSIMetricsManagerForPlugin(o.Driver.Name).WithAdditionalRegistry(o.Registry)
	face := &csi.Server{
		Services: []csi.Service{
			&csi.Identity{Driver: o.Driver, Version: o.Version, Ready: a.observer.Known},
			csi.NewNode(o.Driver, o.Node, a.staging(), a.inline).Tells(a.health()),
		},
		Log: o.Log.WithName("csi"), Metrics: counters,
	}
	pinger, err := csi.NewPinger(o.CSI.Addr().String())
	if err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return face.Serve(ctx, o.CSI) })
	work.Go(func() error { return a.serveHTTP(ctx, pinger, counters) })
	work.Go(func() error { return a.observer.Start(ctx) })
	work.Go(func() error { return a.registered(ctx) })
	work.Go(func() error { return a.joinCluster(ctx) })
	if err := work.Wait(); err != nil {
		_ = pinger.Close() // the process ends with the error that matters
		return err
	}
	return pinger.Close()
}

// owner of the volumes. No driver that an agent serves today has volumes with epochs; one that needs
// them is refused.
func (a *Agent) owner() staging.Owner {
	return owner.ByKind{Wishes: a.wishes, Default: a.options.Driver.Kind, OneCopy: staging.OneCopy{Locks: a.locks}}
}

// staging returns the use cases of the node service.
func (a *Agent) staging() *staging.Service {
	return staging.New(staging.Config{
		Node: a.options.Node, KubeletDir: a.options.KubeletDir, Disks: a.disks, Wishes: a.wishes,
		Mounts: a.options.Mounts, Locks: a.locks, Owner: a.owner(),
	})
}

// health tells what is wrong with volumes.
func (a *Agent) health() *health.Service {
	return &health.Service{
		Node: a.options.Node, Dir: kubeletdir.New(a.options.KubeletDir), Disks: a.disks, Pools: a.observer, Wishes: a.wishes, Mounts: a.options.Mounts,
	}
}

// registered offers the driver to the kubelet once the pools are known. After firstReport it
// offers the driver in any case. Calls for volumes in pools that do not answer then fail and
// say why; all other calls are served.
func (a *Agent) registered(ctx context.Context) error {
	if a.options.RegistrationSocket == "" {
		return nil
	}
	a.awaitReport(ctx)
	if ctx.Err() == nil {
		return a.register.Start(ctx)
	}
	return nil
}

// awaitReport waits for the first report of the pools, for a while.
func (a *Agent) awaitReport(ctx context.Context) {
	first := a.options.Clock.NewTimer(firstReport)
	defer first.Stop()
	select {
	case <-ctx.Done():
	case <-a.observer.Reported():
	case <-first.C():
	}
}

// pause waits, or returns early when ctx ends.
func (a *Agent) pause(ctx context.Context, d time.Duration) {
	timer := a.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
