package agent

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"time"

	csimetrics "github.com/kubernetes-csi/csi-lib-utils/metrics"
	"golang.org/x/sync/errgroup"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"berth.dev/berth/internal/agent/register"
	"berth.dev/berth/internal/csi"
	"berth.dev/berth/internal/health"
	"berth.dev/berth/internal/keyed"
)

// front is what the agents of all drivers have: the socket of CSI, health checks and metrics, the
// registration, and a half that works with the API server.
type front struct {
	options  Options
	locks    *keyed.Locks[string]
	wishes   *wishes
	register *register.Server
}

func newFront(o Options) *front {
	return &front{
		options: o, locks: &keyed.Locks[string]{}, wishes: &wishes{},
		register: &register.Server{
			Driver: o.Driver.Name, Endpoint: o.CSI.Addr().String(),
			Socket: o.RegistrationSocket, Clock: o.Clock, Log: o.Log.WithName("register"),
		},
	}
}

// parts are those in which agents differ.
type parts struct {
	// known returns nil once the agent can serve calls. Nil: at once.
	known   func() error
	volumes csi.NodeVolumes
	inline  csi.InlineVolumes
	// health tells what is wrong with volumes. Nil: the driver does not say.
	health csi.VolumeHealth
	// ready are the checks of /readyz beside those that all agents have.
	ready health.Checks
	// registered waits until the driver is to be offered to the kubelet. Nil: at once.
	registered func(ctx context.Context)
	// cluster works with the API server until it fails or ctx ends.
	cluster func(ctx context.Context) error
	// others run until ctx ends.
	others []func(ctx context.Context) error
}

// serve runs the parts until ctx ends, or one that is not the cluster's fails.
func (f *front) serve(ctx context.Context, p parts) error {
	o := f.options
	counters := csimetrics.NewCSIMetricsManagerForPlugin(o.Driver.Name).WithAdditionalRegistry(o.Registry)
	face := &csi.Server{
		Services: []csi.Service{
			&csi.Identity{Driver: o.Driver, Version: o.Version, Ready: p.known},
			csi.NewNode(o.Driver, o.Node, p.volumes, p.inline).Tells(p.health),
		},
		Log: o.Log.WithName("csi"), Metrics: counters,
	}
	pinger, err := csi.NewPinger(o.CSI.Addr().String())
	if err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error { return face.Serve(ctx, o.CSI) })
	work.Go(func() error { return f.serveHTTP(ctx, pinger, counters, p.ready) })
	work.Go(func() error { return f.offered(ctx, p.registered) })
	work.Go(func() error { return f.join(ctx, p.cluster) })
	for _, other := range p.others {
		work.Go(func() error { return other(ctx) })
	}
	if err := work.Wait(); err != nil {
		_ = pinger.Close() // the process ends with the error that matters
		return err
	}
	return pinger.Close()
}

// offered offers the driver to the kubelet.
func (f *front) offered(ctx context.Context, wait func(ctx context.Context)) error {
	if f.options.RegistrationSocket == "" {
		return nil
	}
	if wait != nil {
		wait(ctx)
	}
	if ctx.Err() == nil {
		return f.register.Start(ctx)
	}
	return nil
}

// rejoin is how soon the cluster half is set up again after it failed.
const rejoin = 2 * time.Second

// join keeps the cluster half running until ctx ends.
func (f *front) join(ctx context.Context, run func(ctx context.Context) error) error {
	for ctx.Err() == nil {
		if err := run(ctx); err != nil && ctx.Err() == nil {
			f.options.Log.Error(err, "working with the API server failed, trying again; volumes on this node stay usable")
			f.pause(ctx, rejoin)
		}
	}
	return nil
}

// probeTimeout bounds a health check.
const probeTimeout = 5 * time.Second

var errNotRegistered = errors.New("the kubelet has not accepted the driver yet")

// serveHTTP answers health checks and metrics until ctx ends.
func (f *front) serveHTTP(ctx context.Context, pinger *csi.Pinger, counters csimetrics.CSIMetricsManager, more health.Checks) error {
	live := health.Checks{"csi": func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
		defer cancel()
		return pinger.Ping(ctx)
	}}
	ready := health.Checks{"csi": live["csi"], "kubelet": health.Of(f.accepted)}
	maps.Copy(ready, more)
	mux := health.Mux(live, ready)
	counters.WithAdditionalRegistry(ctrlmetrics.Registry).RegisterToServer(mux, "/metrics")
	return health.Serve(ctx, f.options.HTTP, mux)
}

// accepted returns nil if the kubelet has accepted the driver, or the agent does not register.
func (f *front) accepted() error {
	if f.options.RegistrationSocket == "" || f.register.Registered() {
		return nil
	}
	return errNotRegistered
}

// pause waits, or returns early when ctx ends.
func (f *front) pause(ctx context.Context, d time.Duration) {
	timer := f.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
