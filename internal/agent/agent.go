package agent

import (
	"context"
	"net"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"berth.dev/berth/internal/agent/metrics"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/agent/owner"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/health"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	volumehealth "berth.dev/berth/internal/publish/health"
	"berth.dev/berth/internal/publish/inline"
	"berth.dev/berth/internal/publish/kubeletdir"
	"berth.dev/berth/internal/publish/staging"
)

// inlineMarks is the directory of the marks of a driver's inline volumes, in the driver's own
// directory below the kubelet's: the marks have to outlive the agent, as the pods do.
func inlineMarks(o Options) inline.MarkDir {
	return inline.MarkDir(filepath.Join(o.KubeletDir, "plugins", o.Driver.Name, "inline"))
}

// Options of the process. Those about pools are for agents of drivers that have them.
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
	// ShutDowns returns the paths below a directory whose filesystem has shut itself down.
	ShutDowns func(dir string) ([]string, error)
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
	// Peers are asked what they know of volumes with epochs; nil if this agent can ask none.
	Peers owner.Peers
	// Version that CSI announces.
	Version string
	Log     logr.Logger
	Clock   clock.WithTicker
}

// Agent is the process of a driver whose volumes are in pools, set up and not started yet.
type Agent struct {
	*front
	disks    poold.Node
	observer *pools.Observer
	orphans  *orphans.Set // volumes
	offers   *offers
	inline   *inline.Service
	// copies are the volumes with copies on several nodes; nil if the agent serves none.
	copies *copies

	orphanSnapshots *orphans.Set
	trims           *metrics.Trims
}

// New puts the parts together.
func New(o Options) *Agent {
	disks := metrics.NewOperations(o.Registry, o.Clock).Node(o.Disks)
	a := &Agent{
		front: newFront(o), disks: disks,
		orphans: &orphans.Set{Now: o.Clock.Now}, orphanSnapshots: &orphans.Set{Now: o.Clock.Now},
		trims:    metrics.NewTrims(o.Registry),
		observer: pools.NewObserver(disks, o.Clock, o.Log.WithName("pools")),
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
	if a.copies != nil {
		defer a.copies.end()
	}
	return a.serve(ctx, parts{
		known: a.observer.Known, volumes: a.staging(), inline: a.inline, health: a.health(),
		ready:      health.Checks{"pools": health.Of(func() error { return a.observer.Latest().Err })},
		registered: a.awaitReport, cluster: a.runCluster,
		others: append([]func(ctx context.Context) error{a.observer.Start}, a.copies.others()...),
	})
}

// owner of the volumes, by their kind. An agent that serves no volumes with epochs refuses those that need them.
func (a *Agent) owner() staging.Owner {
	by := owner.ByKind{Wishes: a.wishes, Default: a.options.Driver.Kind, OneCopy: staging.OneCopy{Locks: a.locks}}
	if a.copies != nil {
		by.Epochs, by.Kept = a.copies.owner, a.copies.knows
	}
	return by
}

// staging returns the use cases of the node service.
func (a *Agent) staging() *staging.Service {
	return staging.New(staging.Config{
		Node: a.options.Node, KubeletDir: a.options.KubeletDir, Disks: a.disks, Wishes: a.wishes,
		Mounts: a.options.Mounts, Locks: a.locks, Owner: a.owner(),
	})
}

// health tells what is wrong with volumes.
func (a *Agent) health() *volumehealth.Service {
	return &volumehealth.Service{
		Node: a.options.Node, Dir: kubeletdir.New(a.options.KubeletDir), Disks: a.disks, Pools: a.observer, Wishes: a.wishes, Mounts: a.options.Mounts,
	}
}

// awaitReport waits for the first report of the pools, for a while. Then the driver is offered to the
// kubelet in any case: calls for volumes in pools that do not answer fail and say why, and all other
// calls are served.
func (a *Agent) awaitReport(ctx context.Context) {
	first := a.options.Clock.NewTimer(firstReport)
	defer first.Stop()
	select {
	case <-ctx.Done():
	case <-a.observer.Reported():
	case <-first.C():
	}
}
