package main

import (
	"context"
	"errors"
	"net"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"berth.dev/berth/internal/agent/metrics"
	"berth.dev/berth/internal/health"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/publish/staging"
)

// defaultKubeletDir is the directory of nearly every kubelet.
const defaultKubeletDir = "/var/lib/kubelet"

type pooldFlags struct {
	socket, kubeletDir, httpAddress string
	udev                            bool
}

func newPooldCommand() *cobra.Command {
	var f pooldFlags
	cmd := &cobra.Command{
		Use:   "poold",
		Short: "Run the pool daemon of a node on a unix socket",
		Long:  "Run the work on a node that needs root, the tools of the pools and the mounts, as a process of its own. It needs no credentials of the cluster.",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.socket, "socket", "/run/berth/poold.sock", "unix socket to serve; for root and this user alone")
	flags.StringVar(&f.kubeletDir, "kubelet-dir", defaultKubeletDir, "the kubelet's directory; nothing is mounted outside")
	flags.StringVar(&f.httpAddress, "http-address", "", "address of /healthz, /readyz and /metrics; empty means none")
	addUdevFlag(cmd, &f.udev)
	return cmd
}

func addUdevFlag(cmd *cobra.Command, udev *bool) {
	cmd.Flags().BoolVar(udev, "udev", false, "udev manages the device nodes, and the tools of the pools wait for it; not in a container")
}

func (f *pooldFlags) run(ctx context.Context) (err error) {
	registry := prometheus.NewRegistry()
	d, err := newDisks(f.udev, metrics.NewCommands(registry))
	if err != nil {
		return err
	}
	d.mounter = staging.Confine(f.kubeletDir, d.mounter)
	work, ctx := errgroup.WithContext(ctx)
	if f.httpAddress != "" {
		l, err := listenHTTP(ctx, f.httpAddress)
		if err != nil {
			return err
		}
		work.Go(func() error { return serveMetrics(ctx, l, registry, d.healthy) })
	}
	work.Go(func() error { return d.run(ctx) })
	work.Go(func() error {
		return poold.Run(ctx, poold.Config{Socket: f.socket, Node: d.node(), Healthy: d.healthy})
	})
	return work.Wait()
}

// serveMetrics serves metrics and health checks of the process itself. Pools that cannot be
// managed do not fail /healthz: after a restart, changes in progress would only begin anew.
func serveMetrics(ctx context.Context, l net.Listener, registry *prometheus.Registry, healthy func() error) error {
	err := errors.Join(
		registry.Register(collectors.NewGoCollector()),
		registry.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})),
	)
	if err != nil {
		return err
	}
	mux := health.Mux(nil, health.Checks{"pools": health.Of(healthy)})
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return health.Serve(ctx, l, mux)
}
