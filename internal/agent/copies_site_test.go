package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi" //nolint:depguard // the test speaks as the kubelet does
	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
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
	"berth.dev/berth/internal/record"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/certtest"
)

// hands are a clock that a test sets forward, for all nodes of a story.
type hands struct {
	clock.RealClock
	ahead *atomic.Int64
}

func (h hands) Now() time.Time                  { return h.RealClock.Now().Add(time.Duration(h.ahead.Load())) }
func (h hands) Since(t time.Time) time.Duration { return h.Now().Sub(t) }

// herd is one volume with two copies, and the nodes that may have them.
type herd struct {
	*apitest.Environment
	t          *testing.T
	id         string
	pool       provision.PoolRef
	keepers    map[string]*keeper
	authority  *certtest.Authority
	controller client.Client
	clock      hands
	// proofs are those that the controller finds, and lost the nodes that its witnesses miss.
	proofs []ownership.Proof
	lost   []string
	wanted []string
}

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

// newHerd makes the class, the Volume with its first record, and an agent on each of two nodes.
func newHerd(t *testing.T) *herd {
	t.Helper()
	h := &herd{
		Environment: apitest.Start(t), t: t, id: v1alpha1.VolumeName(t.Name()), pool: provision.PoolRef{Type: provision.LVM, Name: "vg-copies"},
		keepers: map[string]*keeper{}, authority: certtest.New(t), clock: hands{ahead: &atomic.Int64{}},
	}
	h.controller = h.Controller(t)
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	name = strings.Trim(name[max(0, len(name)-40):], "-")
	class := &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "copies-" + name}, Spec: v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{h.pool.Name}},
	}}
	v := &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: h.id, Labels: map[string]string{}, Finalizers: []string{v1alpha1.VolumeFinalizer}},
		Spec: v1alpha1.VolumeSpec{
			Capacity: resource.MustParse("64Mi"), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4,
			PoolClass: class.Name, Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
			Replication: v1alpha1.Replication{
				Factor: 2, Kind: v1alpha1.ReplicationSnapshots,
				Failover: &v1alpha1.Failover{Automatic: true, MaxDataLoss: &metav1.Duration{Duration: time.Hour}},
			},
		},
	}
	for _, node := range []string{alpha, beta} {
		k := &keeper{h: h, name: node + "-" + name, dir: t.TempDir(), guard: &sentry{fenced: true}, traffic: &traffic{}}
		k.journal, k.disks = journal.Dir(filepath.Join(t.TempDir(), "journal")), memory.NewDisks(memory.PoolConfig{PoolRef: h.pool, Total: 10 * gib})
		k.mounts = mountmemory.New(k.disks)
		k.config = h.AgentConfig(t, k.name)
		k.config.Wrap(k.traffic.wrap)
		h.keepers[node] = k
		v.Labels[v1alpha1.ReplicaLabel(k.name)] = ""
		v.Spec.Replicas = append(v.Spec.Replicas, v1alpha1.ReplicaSpec{Node: k.name, Pool: h.pool.Name})
	}
	for _, o := range []client.Object{class, v} {
		if err := h.Client.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = h.Client.Delete(context.WithoutCancel(t.Context()), class)
		last := &v1alpha1.Volume{}
		if h.Client.Get(context.WithoutCancel(t.Context()), client.ObjectKey{Name: h.id}, last) == nil {
			last.Finalizers = nil
			_ = h.Client.Update(context.WithoutCancel(t.Context()), last)
			_ = h.Client.Delete(context.WithoutCancel(t.Context()), last)
		}
	})
	parameters, err := record.Parameters(v)
	if err != nil {
		t.Fatal(err)
	}
	first, err := record.Into(v, ownership.Begin(*parameters, h.keepers[alpha].name, []string{h.keepers[alpha].name, h.keepers[beta].name}, "first"))
	if err == nil {
		err = h.controller.Status().Update(t.Context(), first)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range h.keepers {
		k.start()
	}
	return h
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
		Disks:  poold.NewLocal(memory.New(k.disks, nil), k.mounts),
		Mounts: func(v provision.Volume) ([]string, error) { return k.mounts.Mounts(v.Content.Source), nil },
		Config: k.config, CSI: calls, HTTP: probes, Registry: prometheus.NewRegistry(), Peers: flock{k},
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

func (h *herd) volume() *v1alpha1.Volume {
	h.t.Helper()
	v := &v1alpha1.Volume{}
	if err := h.Client.Get(h.t.Context(), client.ObjectKey{Name: h.id}, v); err != nil {
		h.t.Fatal(err)
	}
	return v
}

// oversees does what a controller does once.
func (h *herd) oversees() {
	h.t.Helper()
	object := &v1alpha1.Volume{}
	switch err := h.Client.Get(h.t.Context(), client.ObjectKey{Name: h.id}, object); {
	case apierrors.IsNotFound(err):
		return
	case err != nil:
		h.t.Fatal(err)
	}
	v, err := record.From(object)
	if err != nil {
		h.t.Fatal(err)
	}
	f := ownership.ControllerFacts{Now: h.clock.Now(), Record: v, Watching: time.Hour, Proofs: h.proofs, Wanted: h.named(h.wanted)}
	for _, k := range h.keepers {
		lost := slices.Contains(h.lost, k.name)
		f.Nodes = append(f.Nodes, ownership.Machine{Name: k.name, Fits: true, Lost: lost})
		if k.name == v.Primary.Node && lost {
			f.SuspectFor, f.Witnesses = time.Hour, []ownership.Witness{{Name: "x"}, {Name: "y"}}
		}
		if a := k.agent.Load(); a != nil && !lost {
			if p, may, err := a.Copies().Peer(h.t.Context(), h.id, cert.Controllers); err == nil && may {
				f.Peers = append(f.Peers, p)
			}
		}
	}
	a := ownership.OverseeRules.Decide(&f)
	if a.Verb != ownership.Record {
		return
	}
	next, err := record.Into(object, a.Next)
	if err == nil {
		err = h.controller.Status().Update(h.t.Context(), next)
	}
	if err != nil && !apierrors.IsConflict(err) {
		h.t.Fatal(err)
	}
}

func (h *herd) named(short []string) (nodes []string) {
	for _, s := range short {
		nodes = append(nodes, h.keepers[s].name)
	}
	return nodes
}

// until oversees until something is so.
func (h *herd) until(what string, is func() error) {
	h.t.Helper()
	var last error
	deadline := time.Now().Add(2 * patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		h.oversees()
		if last = is(); last == nil {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("waited in vain: %s: %v; the record says %+v", what, last, h.volume().Status.Ownership)
		}
	}
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

// same says whether both nodes have the same newest point, and the record calls both ready.
func (h *herd) same() error {
	if a, b := h.keepers[alpha].tip(), h.keepers[beta].tip(); a.IsZero() || a != b {
		return fmt.Errorf("the newest points are %v and %v", a, b)
	}
	for _, r := range h.volume().Status.Ownership.Replicas {
		if r.State != v1alpha1.OwnedReady {
			return fmt.Errorf("the replica on %s is %s", r.Node, r.State)
		}
	}
	return nil
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

// begins brings a pod up on a node.
func (h *herd) begins(node string) {
	h.t.Helper()
	k := h.keepers[node]
	h.wanted = []string{node}
	h.until("staged on "+node, func() error { return k.stages(h.id) })
	h.until("published on "+node, func() error { return k.publishes(h.id) })
}

// ends brings the pod down.
func (h *herd) ends(node string) {
	h.t.Helper()
	k := h.keepers[node]
	h.wanted = nil
	if _, err := k.csi.NodeUnpublishVolume(h.t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: h.id, TargetPath: k.pod()}); err != nil {
		h.t.Fatal(err)
	}
	h.until("unstaged on "+node, func() error {
		_, err := k.csi.NodeUnstageVolume(h.t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: h.id, StagingTargetPath: k.staging()})
		return err
	})
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
