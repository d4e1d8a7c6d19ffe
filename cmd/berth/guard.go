package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/guard/holders"
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/guard/lease"
	"berth.dev/berth/internal/guard/watchdog"
	"berth.dev/berth/internal/guard/word"
	"berth.dev/berth/internal/health"
	"berth.dev/berth/internal/peer/address"
)

type guardFlags struct {
	node, namespace, kubeconfig, httpAddress string
	socket, watchdog, pods                   string
	peers                                    peerFlags
}

func newGuardCommand() *cobra.Command {
	var f guardFlags
	cmd := &cobra.Command{
		Use:   "guard",
		Short: "Run the guard of a node: it stops the node's writers when the node must not write any more",
		Long: "Run the guard of a node. It renews the node's lease, stops the pods that write into volumes when the node has not renewed it, " +
			"and leaves the machine to its watchdog where that fails. It runs on while agents are replaced.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.node, "node-name", os.Getenv("NODE_NAME"), "name of the Node that this process runs on; by default $NODE_NAME")
	flags.StringVar(&f.namespace, "namespace", namespaceFromEnvironment(), "namespace that Berth is installed in")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty means that the process runs in the cluster")
	flags.StringVar(&f.httpAddress, "http-address", ":9810", "address of /healthz and /readyz")
	flags.StringVar(&f.socket, "socket", "/run/berth-guard/guard.sock", "unix socket on which the agent speaks; beside it is what a guard must know of the one before")
	flags.StringVar(&f.watchdog, "watchdog", "/dev/watchdog0", "the machine's watchdog")
	flags.StringVar(&f.pods, "pods-cgroup", "", "control group below which all pods are; empty means that it is found from the guard's own")
	f.peers.add(flags)
	return cmd
}

func (f *guardFlags) run(ctx context.Context) error {
	if f.node == "" {
		return errors.New("--node-name is missing: give it, or set NODE_NAME to spec.nodeName")
	}
	if !filepath.IsAbs(f.socket) {
		return fmt.Errorf("--socket %q is not an absolute path", f.socket)
	}
	if err := f.peers.complete(); err != nil {
		return err
	}
	config, err := clusterConfig(f.kubeconfig)
	if err != nil {
		return err
	}
	c, err := clusterClient(config)
	if err != nil {
		return err
	}
	others := f.peers.openGuard(ctx, config, f.node, address.Leases{Client: c, Namespace: f.namespace, Prefix: v1alpha1.GuardLeasePrefix}, filepath.Dir(f.socket))
	keeper, kernel, err := f.keeper(c, others)
	if err != nil {
		return errors.Join(err, others.close())
	}
	asks, err := word.Listen(ctx, f.socket)
	if err != nil {
		return errors.Join(err, others.close())
	}
	probes, err := listenHTTP(ctx, f.httpAddress)
	if err != nil {
		return errors.Join(err, closed(asks), others.close())
	}
	return guard(ctx, keeper, func(ctx context.Context) error {
		work, ctx := errgroup.WithContext(ctx)
		work.Go(func() error {
			return (&word.Server{Keeper: keeper, CgroupOf: kernel.CgroupOf}).Serve(ctx, asks)
		})
		work.Go(func() error {
			return health.Serve(ctx, probes, health.Mux(nil, health.Checks{"agent": health.Of(func() error { return unfenced(keeper) })}))
		})
		work.Go(func() error {
			others.run(ctx, func() time.Duration { return keeper.Status().SinceRenewal })
			return nil
		})
		return work.Wait()
	})
}

// guard keeps the promise, and serves meanwhile. When asked to end it goes on until no epoch is
// open, and takes the agent's word until then. A failure of what it serves ends it at once, and the
// kubelet begins it anew.
func guard(ctx context.Context, keeper *keep.Keeper, serve func(context.Context) error) error {
	work, serving := errgroup.WithContext(context.WithoutCancel(ctx))
	serving, done := context.WithCancel(serving)
	work.Go(func() error {
		defer done()
		return keeper.Run(serving, ctx.Done())
	})
	work.Go(func() error { return serve(serving) })
	return work.Wait()
}

// unfenced says on /readyz why no epoch may begin on this node.
func unfenced(k *keep.Keeper) error {
	if s := k.Status(); s.Fenced {
		return errors.New(s.Message)
	}
	return nil
}

// keeper puts the parts together.
func (f *guardFlags) keeper(c client.Client, others *guardPeers) (*keep.Keeper, *holders.Kernel, error) {
	boot, err := keep.Boot()
	if err != nil {
		return nil, nil, err
	}
	var keeper *keep.Keeper
	kernel, err := holders.New(holders.Config{Pods: f.pods, Agent: func() string { return keeper.Agent() }, Log: ctrl.Log})
	if err != nil {
		return nil, nil, err
	}
	own := &lease.Lease{Client: c, Node: f.node, Namespace: f.namespace, Boot: boot, Now: time.Now}
	parts := keep.Config{
		Boot: boot, Now: keep.Now, Node: f.node,
		Lease:    own,
		Writers:  kernel,
		Watchdog: watchdog.New(f.watchdog),
		Store:    keep.File(filepath.Join(filepath.Dir(f.socket), "state.json")),
		Clock:    clock.RealClock{}, Log: ctrl.Log,
	}
	if others != nil {
		own.Address, parts.Peers = others.announced, others.client
	}
	keeper, err = keep.New(parts)
	return keeper, kernel, err
}
