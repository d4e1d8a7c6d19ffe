package sanity

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/driver"
	mounts "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

const (
	node  = "sanity"
	class = "sanity"
)

// sockets are those of the two halves of the driver, with the kubelet's directory.
type sockets struct{ node, controller, kubeletDir string }

// start runs the driver with a pool that is large enough for the suite.
func start(t *testing.T) sockets {
	t.Helper()
	e := apitest.Start(t)
	controllertest.NewClass(t, e, class)
	dir, err := os.MkdirTemp("", "sanity") // short: there is a socket in it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	d := sockets{node: filepath.Join(dir, "csi.sock"), kubeletDir: dir}
	startAgent(t, e, d)
	p := controllertest.Start(t, e, controllertest.WithSnapshots())
	d.controller = p.Socket
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		room, err := p.Volumes.Capacity(ctx, class, []string{node})
		return room.Total > 0, err
	})
	if err != nil {
		t.Fatalf("the node never offered its pool: %v", err)
	}
	return d
}

func startAgent(t *testing.T, e *apitest.Environment, d sockets) {
	t.Helper()
	config := e.AgentConfig(t, node) // makes the Node
	n := &corev1.Node{}
	if err := e.Client.Get(t.Context(), client.ObjectKey{Name: node}, n); err != nil {
		t.Fatal(err)
	}
	n.Labels = map[string]string{v1alpha1.TopologyKey: node}
	if err := e.Client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	if err := e.Client.Status().Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	disks := memory.NewDisks(memory.PoolConfig{
		PoolRef: provision.PoolRef{Type: provision.LVMThin, Name: controllertest.Pool}, Total: 1 << 40,
	})
	mounter := mounts.New(disks)
	a := agent.New(agent.Options{
		Driver: driver.Local(),
		Node:   node, Namespace: apitest.Namespace, KubeletDir: d.kubeletDir,
		Disks:    poold.NewLocal(memory.New(disks, nil), mounter),
		Mounts:   func(v provision.Volume) ([]string, error) { return mounter.Mounts(v.Content.Source), nil },
		Config:   config,
		CSI:      listen(t, "unix", d.node),
		HTTP:     listen(t, "tcp", "127.0.0.1:0"),
		Registry: prometheus.NewRegistry(),
		Version:  "test", Log: logged(t), Clock: clock.RealClock{},
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
}

// logged writes the agent's log to the output of the test.
func logged(t *testing.T) logr.Logger {
	t.Helper()
	return logr.FromSlogHandler(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

func listen(t *testing.T, network, address string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}
