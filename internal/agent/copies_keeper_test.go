package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/container-storage-interface/spec/lib/go/csi" //nolint:depguard // the test speaks as the kubelet does
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/guard"
	"berth.dev/berth/internal/lineage"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

// keeper is one node with a pool in memory.
type keeper struct {
	h       *herd
	name    string
	boot    int
	disks   *memory.Disks
	mounts  *mountmemory.Mounter
	config  *rest.Config
	traffic *traffic
	journal journal.Files
	dir     string // the kubelet's
	guard   *sentry
	agent   atomic.Pointer[Agent]
	streams string // where it serves streams
	csi     csi.NodeClient
	stop    func()
}

// dials opens a connection to a node's streams, as the addresses in its Lease have it.
func (k *keeper) dials(ctx context.Context, node string) (net.Conn, error) {
	for _, other := range k.h.keepers {
		if other.name == node && other.agent.Load() != nil && !k.traffic.isCut() && !other.traffic.isCut() {
			return (&net.Dialer{}).DialContext(ctx, "tcp", other.streams)
		}
	}
	return nil, fmt.Errorf("node %s cannot be reached", node)
}

// flock asks the agents of the other nodes, as the peers' client does.
type flock struct{ k *keeper }

func (f flock) Ask(ctx context.Context, volume string, nodes []string) (out []ownership.Peer) {
	for _, other := range f.k.h.keepers {
		if a := other.agent.Load(); a != nil && slices.Contains(nodes, other.name) && !f.k.traffic.isCut() && !other.traffic.isCut() {
			if p, may, err := a.Copies().Peer(ctx, volume, f.k.name); may && err == nil {
				out = append(out, p)
			}
		}
	}
	return out
}

func (k *keeper) bootID() string { return fmt.Sprintf("%s-boot-%d", k.name, k.boot) }

// start begins a new life of the node's agent.
func (k *keeper) start() {
	t := k.h.t
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	calls, err := (&net.ListenConfig{}).Listen(ctx, "unix", filepath.Join(t.TempDir(), "csi.sock"))
	if err != nil {
		t.Fatal(err)
	}
	probes, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	streams, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	k.streams = streams.Addr().String()
	a, err := NewReplicated(ctx, Options{
		Driver: driver.Local(), Node: k.name, Namespace: apitest.Namespace, KubeletDir: k.dir,
		Disks:     poold.NewLocal(memory.New(k.disks, nil), k.mounts),
		ShutDowns: func(string) ([]string, error) { return nil, nil },
		Mounts:    func(v provision.Volume) ([]string, error) { return k.mounts.Mounts(v.Content.Source), nil },
		Config:    k.config, CSI: calls, HTTP: probes, Registry: prometheus.NewRegistry(), Peers: flock{k},
		Version: "test", Log: logr.Discard(), Clock: k.h.clock,
	}, Copies{
		Boot: k.bootID(), Journal: k.journal, Guard: k.guard, Cover: func(string) error { return nil },
		Holding:  func(provision.Content) (guard.Holding, error) { return guard.Holding{Device: "8:0", Block: true}, nil },
		Identity: k.h.authority.Node(t, k.name), Listener: streams, Dial: k.dials,
	})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	k.agent.Store(a)
	k.csi = csi.NewNodeClient(dial(t, calls.Addr().String()))
	k.stop = sync.OnceFunc(func() {
		k.agent.Store(nil)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the agent ended with: %v", err)
		}
	})
	t.Cleanup(func() { k.stop() })
}

// loses ends the machine: its agent, its mounts, and what its guard knew.
func (k *keeper) loses() {
	k.stop()
	for _, path := range []string{k.pod(), k.staging()} {
		if err := k.mounts.Unmount(k.h.t.Context(), path); err != nil {
			k.h.t.Fatal(err)
		}
	}
	k.boot, k.guard = k.boot+1, &sentry{fenced: true}
}

// state is what a node keeps of the volume.
func (k *keeper) state() provision.Replica {
	k.h.t.Helper()
	s, err := memory.NewReplicator(memory.New(k.disks, nil), k.h.clock.Now).State(k.h.t.Context(), k.h.id)
	if err != nil && !errors.Is(err, provision.ErrNotFound) {
		k.h.t.Fatal(err)
	}
	return s
}

// tip is the newest point that the node keeps of the volume.
func (k *keeper) tip() lineage.Point {
	k.h.t.Helper()
	s := k.state()
	return s.Tip()
}

func (k *keeper) capability() *csi.VolumeCapability {
	return &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	}
}

func (k *keeper) staging() string { return filepath.Join(k.dir, "stage") }
func (k *keeper) pod() string     { return filepath.Join(k.dir, "pod") }

func (k *keeper) stages(id string) error {
	_, err := k.csi.NodeStageVolume(k.h.t.Context(), &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: k.staging(), VolumeCapability: k.capability()})
	return err
}

func (k *keeper) publishes(id string) error {
	_, err := k.csi.NodePublishVolume(k.h.t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: id, StagingTargetPath: k.staging(), TargetPath: k.pod(), VolumeCapability: k.capability(),
	})
	return err
}

// writes is a pod's write on a node that has the volume.
func (k *keeper) writes(text string) {
	k.h.t.Helper()
	v, ok := k.disks.Device("/dev/" + k.h.pool.Name + "/" + k.h.id)
	if !ok || !slices.Contains(k.mounts.Mounts(v.Content.Source), k.pod()) {
		k.h.t.Fatalf("the volume is not in the pod on %s", k.name)
	}
	k.disks.Write(k.h.id, text)
}
