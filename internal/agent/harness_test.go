package agent

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/driver"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

const (
	mib = int64(1 << 20)
	gib = int64(1 << 30)

	// patience is long because the machine may be busy.
	patience = 60 * time.Second
)

// site is one node with disks in memory, and the agent on it.
type site struct {
	*apitest.Environment
	t      testing.TB
	name   string // of the node, and of everything the test makes
	pool   provision.PoolRef
	disks  *memory.Disks
	mounts *mountmemory.Mounter
	dir    string // the kubelet's
	config *rest.Config
	clock  clock.WithTicker
	// retention of orphans.
	retention time.Duration
	// registration socket; empty for none.
	registration string
	// node stands between the agent and its disks.
	node    poold.Node
	traffic *traffic
}

// newSite prepares a node whose name is made from the test's.
func newSite(t testing.TB, suffix string) *site {
	t.Helper()
	name := strings.ToLower(strings.TrimPrefix(strings.TrimPrefix(strings.ReplaceAll(t.Name(), "/", "-"), "Test"), "Benchmark"))
	name = name[:min(len(name), 50)] + suffix
	pool := provision.PoolRef{Type: "LVM", Name: "vg-" + name}
	s := &site{
		Environment: apitest.Start(t), t: t, name: name, pool: pool,
		disks: memory.NewDisks(memory.PoolConfig{PoolRef: pool, Total: 10 * gib}),
		dir:   t.TempDir(), clock: clock.RealClock{}, traffic: &traffic{},
	}
	s.mounts = mountmemory.New(s.disks)
	s.node = poold.NewLocal(memory.New(s.disks, nil), s.mounts)
	s.config = s.AgentConfig(t, name)
	s.config.Wrap(s.traffic.wrap)
	return s
}

// agent is a running agent; stop ends it as a process ends.
type agent struct {
	*Agent
	csi, http string
	stop      func()
}

// start starts an agent on the site.
func (s *site) start() *agent {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	calls, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(s.t.TempDir(), "csi.sock"))
	if err != nil {
		s.t.Fatal(err)
	}
	probes, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	a := New(Options{
		Driver: driver.Local(),
		Node:   s.name, Namespace: apitest.Namespace, KubeletDir: s.dir, Disks: s.node,
		ShutDowns: func(string) ([]string, error) { return nil, nil },
		Mounts:    func(v provision.Volume) ([]string, error) { return s.mounts.Mounts(v.Content.Source), nil },
		Config:    s.config, CSI: calls, RegistrationSocket: s.registration, HTTP: probes, Registry: prometheus.NewRegistry(),
		OrphanRetention: s.retention, Version: "test", Log: logr.Discard(), Clock: s.clock,
	})
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	running := &agent{Agent: a, csi: calls.Addr().String(), http: "http://" + probes.Addr().String()}
	stopped := false
	running.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			s.t.Errorf("the agent ended with: %v", err)
		}
	}
	s.t.Cleanup(running.stop)
	return running
}

// await polls until a condition of the outside world holds.
func await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("waited %s in vain: %s", patience, what)
		case <-tick.C:
		}
	}
}

// create makes objects as an administrator or the controller would, and removes
// them after the test.
func (s *site) create(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		if err := s.Client.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() {
			if err := client.IgnoreNotFound(s.Client.Delete(context.WithoutCancel(s.t.Context()), o)); err != nil {
				s.t.Error(err)
			}
		})
	}
}
