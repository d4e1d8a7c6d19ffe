package cluster

import (
	"context"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/api/v1alpha1"
)

// Cluster is a connection to a running cluster and to the lab that runs it.
type Cluster struct {
	client.WithWatch
	Config *rest.Config
	Lab    Lab

	kubeconfig string
}

// Connect opens the cluster whose kubeconfig KUBECONFIG names, or the lab's.
func Connect(ctx context.Context) (*Cluster, error) {
	lab, err := FindLab()
	if err != nil {
		return nil, err
	}
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		if path, err = lab.Output(ctx, "kubeconfig"); err != nil {
			return nil, fmt.Errorf("asking the lab for its kubeconfig (is it up? make lab-up): %w", err)
		}
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("reading kubeconfig: %w", err)
	}
	// Without a logger the client complains with a stack trace. The client returns its
	// failures as errors.
	log.SetLogger(logr.Discard())
	// The benchmarks count requests of other processes; this client must not wait
	// for its own limit.
	config.QPS, config.Burst = 500, 1000
	c, err := client.NewWithWatch(config, client.Options{Scheme: Scheme()})
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &Cluster{WithWatch: c, Config: config, Lab: lab, kubeconfig: path}, nil
}

// Scheme knows Kubernetes' objects and Berth's.
func Scheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, snapshotv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // A type is registered twice: a mistake in this program.
		}
	}
	return s
}
