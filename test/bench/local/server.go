package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"berth.dev/berth/api/v1alpha1"
)

// server is a running API server with Berth's definitions.
type server struct {
	client.Client
	// kubeconfig is the path of an administrator's kubeconfig.
	kubeconfig, version string
}

// withServer calls do while etcd and an API server run. It writes the kubeconfig to dir.
func withServer(ctx context.Context, o options, dir string, do func(context.Context, server) error) (err error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return errors.New("KUBEBUILDER_ASSETS is not set: use `make bench-local`")
	}
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		return fmt.Errorf("registering the objects: %w", err)
	}
	control := &envtest.Environment{
		Scheme:                   s,
		BinaryAssetsDirectory:    assets,
		CRDDirectoryPaths:        []string{filepath.Join(o.root, "charts", "berth", "crd-bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	defer func() { err = errors.Join(err, control.Stop()) }()
	config, err := control.Start()
	if err != nil {
		return fmt.Errorf("starting etcd and kube-apiserver from %s: %w", assets, err)
	}
	config.QPS, config.Burst = -1, -1
	up := server{kubeconfig: filepath.Join(dir, "kubeconfig")}
	if up.Client, err = client.New(config, client.Options{Scheme: s}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	version, err := set.Discovery().ServerVersion()
	if err != nil {
		return fmt.Errorf("asking the API server's version: %w", err)
	}
	up.version = version.GitVersion
	if err := writeKubeconfig(control, up.kubeconfig); err != nil {
		return err
	}
	return do(ctx, up)
}

func writeKubeconfig(control *envtest.Environment, path string) error {
	user, err := control.AddUser(envtest.User{Name: "bench", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return fmt.Errorf("making a user: %w", err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return fmt.Errorf("making a kubeconfig: %w", err)
	}
	return os.WriteFile(path, kubeconfig, 0o600)
}
