package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/csi"
)

// doorFlags say where a process of the cluster listens, and how it reaches the API server.
type doorFlags struct {
	csiSocket, httpAddress, namespace, kubeconfig string
}

// add adds the flags that mean the same for all processes.
func (f *doorFlags) add(flags *pflag.FlagSet, httpAddress string) {
	flags.StringVar(&f.httpAddress, "http-address", httpAddress, "address of /healthz, /readyz and /metrics")
	flags.StringVar(&f.namespace, "namespace", namespaceFromEnvironment(), "namespace that Berth is installed in")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "path of a kubeconfig; empty means that the process runs in the cluster")
}

// namespaceFromEnvironment returns $POD_NAMESPACE, the pod's own namespace; else the default.
func namespaceFromEnvironment() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	return "berth-system"
}

// doors are the way of a process to the API server, and its listeners.
type doors struct {
	// cluster is the way to the API server; csi takes calls of CSI, and http health checks
	// and scrapes.
	cluster   *rest.Config
	csi, http net.Listener
}

// open opens the doors; on an error none is left open.
func (f *doorFlags) open(ctx context.Context) (d *doors, err error) {
	d = &doors{}
	if d.cluster, err = clusterConfig(f.kubeconfig); err != nil {
		return nil, err
	}
	if d.csi, err = csi.Listen(ctx, f.csiSocket); err != nil {
		return nil, err
	}
	if d.http, err = listenHTTP(ctx, f.httpAddress); err != nil {
		return nil, errors.Join(err, closed(d.csi))
	}
	return d, nil
}

func (d *doors) close() error { return errors.Join(closed(d.csi), closed(d.http)) }

// listenHTTP opens the value of --http-address.
func listenHTTP(ctx context.Context, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("opening --http-address: %w", err)
	}
	return l, nil
}

// closed closes a listener that its server may have closed already.
func closed(l net.Listener) error {
	if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing %s: %w", l.Addr(), err)
	}
	return nil
}

// clusterClient asks the API server itself, without a cache.
func clusterClient(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("reaching the API server: %w", err)
	}
	return c, nil
}
