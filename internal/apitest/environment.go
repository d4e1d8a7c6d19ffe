package apitest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/api/v1alpha1"
)

const (
	assetsVariable = "KUBEBUILDER_ASSETS"

	// A machine that compiles at the same time is slow, not broken.
	startTimeout = 3 * time.Minute
	stopTimeout  = time.Minute
)

// Environment is a running API server.
type Environment struct {
	// Config has the administrator's rights.
	Config *rest.Config
	// Client has the administrator's rights and no cache.
	Client client.Client
	// Scheme knows the built-in objects and Berth's.
	Scheme *runtime.Scheme

	control *envtest.Environment
}

var shared struct {
	sync.Mutex
	environment *Environment
	err         error
	inMain      bool
	options     []Option
}

// Main runs a package's tests and ends the API server, if one was started, when
// they are done or interrupted. It does not return.
func Main(m *testing.M, options ...Option) {
	shared.inMain, shared.options = true, options
	log.SetLogger(logr.Discard()) // else controller-runtime complains that no logger was set
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-interrupted
		_ = stop()
		os.Exit(130)
	}()
	code := m.Run()
	if err := stop(); err != nil {
		fmt.Fprintln(os.Stderr, "stopping the test API server:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// Start returns the package's API server.
func Start(t testing.TB) *Environment {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if !shared.inMain {
		t.Fatal("apitest.Start needs func TestMain(m *testing.M) { apitest.Main(m) } in this package: without it the API server would be left running")
	}
	if shared.environment == nil && shared.err == nil {
		shared.environment, shared.err = start(t.Context())
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.environment
}

func start(ctx context.Context) (*Environment, error) {
	assets := os.Getenv(assetsVariable)
	if assets == "" {
		return nil, errors.New(assetsVariable + " is not set: these tests need etcd and kube-apiserver; " +
			"use `make test`, or `export " + assetsVariable + "=$(cd lab && go run ./cmd/lab assets)` in the repository's root")
	}
	chart, err := chartDir()
	if err != nil {
		return nil, err
	}
	s := runtime.NewScheme()
	if err := errors.Join(scheme.AddToScheme(s), v1alpha1.AddToScheme(s)); err != nil {
		return nil, fmt.Errorf("registering the objects: %w", err)
	}
	control := &envtest.Environment{
		Scheme:                   s,
		BinaryAssetsDirectory:    assets,
		CRDDirectoryPaths:        []string{filepath.Join(chart, definitions)},
		ErrorIfCRDPathMissing:    true,
		ControlPlaneStartTimeout: startTimeout,
		ControlPlaneStopTimeout:  stopTimeout,
	}
	control.ControlPlane.Etcd = &envtest.Etcd{}
	control.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "true") // the data dies with the test
	for _, change := range shared.options {
		change(control.ControlPlane.GetAPIServer())
	}
	config, err := control.Start()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting etcd and kube-apiserver from %s: %w", assets, err), control.Stop())
	}
	config.QPS, config.Burst = -1, -1
	e := &Environment{Config: config, Scheme: s, control: control}
	if err := e.prepare(ctx, chart); err != nil {
		return nil, errors.Join(err, control.Stop())
	}
	return e, nil
}

func (e *Environment) prepare(ctx context.Context, chart string) error {
	var err error
	if e.Client, err = client.New(e.Config, client.Options{Scheme: e.Scheme}); err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	if err := e.installAgentAccount(ctx); err != nil {
		return err
	}
	return e.installPolicies(ctx, chart)
}

func stop() error {
	shared.Lock()
	defer shared.Unlock()
	if shared.environment == nil {
		return nil
	}
	err := shared.environment.control.Stop()
	shared.environment = nil
	return err
}
