package controllertest

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/usecase/luns"
	"berth.dev/berth/internal/usecase/snapshots"
	"berth.dev/berth/internal/usecase/volumes"
)

// patience is how long a test waits for something before it counts as missing.
const patience = 60 * time.Second

// Process is a controller that runs.
type Process struct {
	Volumes   *volumes.Service
	Snapshots *snapshots.Service
	// LUNs are the use cases of shared disks; nil for other drivers.
	LUNs *luns.Service
	// Book is the ledger they decide by.
	Book *schedule.Book
	// Socket serves CSI, HTTP the health checks.
	Socket, HTTP string
	stop         context.CancelFunc
	stopped      chan error
}

// Option changes how a Process runs.
type Option func(*controller.Options)

// WithWrap wraps the client that writes.
func WithWrap(wrap func(client.Client) client.Client) Option {
	return func(o *controller.Options) { o.Wrap = wrap }
}

// WithMade calls f for each object that the process has made, once the process has the
// answer: a call that is cancelled earlier fails in the middle of the request.
func WithMade(f func(client.Object)) Option {
	return WithWrap(func(c client.Client) client.Client { return maker{c, f} })
}

type maker struct {
	client.Client
	made func(client.Object)
}

func (m maker) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	err := m.Client.Create(ctx, o, options...)
	if err == nil {
		m.made(o)
	}
	return err
}

// WithConfig replaces the connection to the API server.
func WithConfig(config *rest.Config) Option {
	return func(o *controller.Options) { o.Config = config }
}

// WithClock replaces the clock and makes orphans due after the delay.
func WithClock(c controller.Clock, orphanDelay time.Duration) Option {
	return func(o *controller.Options) { o.Clock, o.OrphanDelay = c, orphanDelay }
}

// WithExtender serves the extender on a loopback listener.
func WithExtender(listener net.Listener) Option {
	return func(o *controller.Options) { o.Extender.Listener = listener }
}

// WithSnapshots announces snapshots.
func WithSnapshots() Option { return func(o *controller.Options) { o.Snapshots = true } }

// WithDriver makes the process serve another driver than the local one.
func WithDriver(d driver.Driver) Option { return func(o *controller.Options) { o.Driver = d } }

// WithLeaderElection makes the process wait until it leads.
func WithLeaderElection() Option {
	return func(o *controller.Options) { o.LeaderElection = true }
}

// Start runs a controller until the test ends or Stop is called, and waits until
// it serves.
func Start(t testing.TB, e *apitest.Environment, options ...Option) *Process {
	t.Helper()
	p := &Process{Socket: socketPath(t), stopped: make(chan error, 1)}
	o := controller.Options{
		Driver:    driver.Local(),
		Config:    e.Config,
		Namespace: apitest.Namespace,
		CSI:       listen(t, "unix", p.Socket),
		HTTP:      listen(t, "tcp", "127.0.0.1:0"),
		Version:   "test",
		Log:       logr.Discard(),
		Clock:     clock.RealClock{},
	}
	p.HTTP = "http://" + o.HTTP.Addr().String()
	for _, option := range options {
		option(&o)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	p.stop = stop
	built, err := controller.New(ctx, o)
	if err != nil {
		stop()
		t.Fatal(err)
	}
	p.Volumes, p.Snapshots, p.LUNs, p.Book = built.Volumes, built.Snapshots, built.LUNs, built.Book
	go func() { p.stopped <- built.Run(ctx) }()
	t.Cleanup(func() { p.Stop(t) })
	select {
	case <-built.Synced:
	case err := <-p.stopped:
		t.Fatalf("the controller ended at its start: %v", err)
	case <-time.After(patience):
		t.Fatal("the controller does not get ready")
	}
	return p
}

// Stop ends the process. Like a kill it loses everything that is not in the API server.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	if p.stop == nil {
		return
	}
	p.stop()
	p.stop = nil
	select {
	case err := <-p.stopped:
		if err != nil {
			t.Errorf("the controller ended with: %v", err)
		}
	case <-time.After(patience):
		t.Error("the controller does not stop")
	}
}

func listen(t testing.TB, network, address string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// socketPath returns a short path: a unix socket's path holds 107 bytes, and a test's
// own directory may be longer.
func socketPath(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "berth")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "csi.sock")
}
