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
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/scheduler/internal/controlplane"
	"berth.dev/berth/test/scrape"
)

// server is a running API server.
type server struct {
	control *envtest.Environment
	config  *rest.Config
	// core speaks protobuf, as kubelets and schedulers do; berth is for Berth's
	// own objects.
	core     kubernetes.Interface
	berth    client.Client
	scheme   *runtime.Scheme
	programs controlplane.Programs
}

// notAdmitted are admission plugins that would wait for controllers which do not
// run, or undo the state that a simulated node reports.
var notAdmitted = []string{"ServiceAccount", "StorageObjectInUseProtection", "TaintNodesByCondition"}

// startServer starts etcd and the API server with Berth's definitions.
func startServer(o options, dir string) (*server, error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return nil, errors.New("KUBEBUILDER_ASSETS is not set: use `make bench-scheduling`")
	}
	s := &server{scheme: runtime.NewScheme()}
	if err := errors.Join(scheme.AddToScheme(s.scheme), v1alpha1.AddToScheme(s.scheme)); err != nil {
		return nil, fmt.Errorf("registering the objects: %w", err)
	}
	s.control = &envtest.Environment{
		Scheme:                   s.scheme,
		BinaryAssetsDirectory:    assets,
		CRDDirectoryPaths:        []string{filepath.Join(o.root, "charts", "berth", "crd-bases")},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: 3 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	s.control.ControlPlane.Etcd = &envtest.Etcd{}
	s.control.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true").Set("quota-backend-bytes", "8589934592")
	s.control.ControlPlane.GetAPIServer().Configure().Set("disable-admission-plugins", notAdmitted...)
	config, err := s.control.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting etcd and kube-apiserver from %s: %w", assets, err), s.control.Stop())
	}
	config.QPS, config.Burst = -1, -1
	s.config = config
	if err := s.connect(dir); err != nil {
		return nil, errors.Join(err, s.control.Stop())
	}
	return s, nil
}

func (s *server) connect(dir string) (err error) {
	protobuf := rest.CopyConfig(s.config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	if s.core, err = kubernetes.NewForConfig(protobuf); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if s.berth, err = client.New(s.config, client.Options{Scheme: s.scheme}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	s.programs.Dir = dir
	s.programs.Kubeconfig, err = controlplane.Kubeconfig(dir, s.config)
	return err
}

func (s *server) stop() error { return s.control.Stop() }

// version is the API server's.
func (s *server) version() (string, error) {
	v, err := s.core.Discovery().ServerVersion()
	if err != nil {
		return "", fmt.Errorf("asking the API server's version: %w", err)
	}
	return v.GitVersion, nil
}

// metrics are the API server's.
func (s *server) metrics(ctx context.Context) (scrape.Families, error) {
	raw, err := s.core.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	return scrape.Parse(raw)
}
