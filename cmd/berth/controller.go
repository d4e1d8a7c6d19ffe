package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	"berth.dev/berth/internal/controller"
	"berth.dev/berth/internal/csi"
)

// controllerFlags are few on purpose: what users decide is in PoolClasses.
type controllerFlags struct {
	csiSocket, httpAddress, namespace, kubeconfig string
	leaderElection, snapshots                     bool
	extender                                      extenderFlags
}

func newControllerCommand() *cobra.Command {
	var f controllerFlags
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Run the CSI controller service and the reconcilers",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return runController(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.csiSocket, "csi-socket", "/csi/csi.sock", "unix socket on which the CSI sidecars connect")
	flags.StringVar(&f.httpAddress, "http-address", ":8081", "address of /healthz, /readyz and /metrics")
	flags.StringVar(&f.namespace, "namespace", namespaceFromEnvironment(), "namespace that Berth is installed in")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty means that the process runs in the cluster")
	flags.BoolVar(&f.leaderElection, "leader-election", true, "let only one of several controllers run the reconcilers")
	flags.BoolVar(&f.snapshots, "snapshots", false, "announce snapshots, and volumes made from snapshots and volumes; the csi-snapshotter then runs beside this process")
	f.extender.add(flags)
	return cmd
}

// namespaceFromEnvironment is the pod's own namespace, where it is told.
func namespaceFromEnvironment() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	return "berth-system"
}

func runController(ctx context.Context, f controllerFlags) (err error) {
	config, err := clusterConfig(f.kubeconfig)
	if err != nil {
		return err
	}
	calls, err := csi.Listen(ctx, f.csiSocket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closed(calls)) }()
	probes, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.httpAddress)
	if err != nil {
		return fmt.Errorf("opening --http-address: %w", err)
	}
	defer func() { err = errors.Join(err, closed(probes)) }()

	serve, err := f.extender.open(ctx)
	if err != nil {
		return err
	}
	if serve.Listener != nil {
		defer func() { err = errors.Join(err, closed(serve.Listener)) }()
	}

	return controller.Run(ctx, controller.Options{
		Extender:       serve,
		Snapshots:      f.snapshots,
		Config:         config,
		Namespace:      f.namespace,
		LeaderElection: f.leaderElection,
		CSI:            calls,
		HTTP:           probes,
		Version:        version,
		Log:            ctrl.Log,
		Clock:          clock.RealClock{},
	})
}

// closed closes a listener that its server may have closed already.
func closed(l net.Listener) error {
	if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing %s: %w", l.Addr(), err)
	}
	return nil
}

// clusterConfig finds the API server.
func clusterConfig(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("finding the API server (outside a cluster give --kubeconfig): %w", err)
	}
	config.UserAgent = "berth/" + version
	return config, nil
}
