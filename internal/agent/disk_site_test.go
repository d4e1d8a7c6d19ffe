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
	"berth.dev/berth/internal/guard/keep"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/publish/staging"
	"berth.dev/berth/internal/record"
	"berth.dev/berth/internal/replicate/cert"
)

// machinery is what a node's machine is made of: all but its agent and its guard.
type machinery struct {
	SharedDisks
	mounts staging.MountTable
	// write and read are a pod that has the volume at a path. A raw block volume is a file there.
	write func(path, text string) error
	read  func(path string) (string, error)
	// covered are the paths from which the agent took a volume by itself.
	covered func() []string
}

// scene is a Volume that is a shared disk, and two nodes that can reach it.
type scene struct {
	*apitest.Environment
	t         *testing.T
	id        string
	nodes     map[string]*sharing
	oversight client.Client
	// proofs are those that the controller finds, and lost the nodes that its witnesses miss.
	proofs []ownership.Proof
	lost   []string
	wanted []string
}

// sharing is one node.
type sharing struct {
	s       *scene
	name    string
	made    machinery
	config  *rest.Config
	traffic *traffic
	journal journal.Files
	dir     string // the kubelet's
	guard   *sentry
	agent   atomic.Pointer[DiskAgent]
	csi     csi.NodeClient
	http    string
	stop    func()
}

const (
	alpha, beta  = "alpha", "beta"
	diskIdentity = "wwn:shared"
)

// newShared makes the Volume and the nodes, and starts an agent on each.
func newShared(t *testing.T, made func(s *scene, node string) machinery, change ...func(*v1alpha1.Volume)) *scene {
	t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))
	name = name[max(0, len(name)-40):]
	s := &scene{Environment: apitest.Start(t), t: t, id: v1alpha1.VolumeName(t.Name()), nodes: map[string]*sharing{}}
	s.oversight = s.Controller(t)
	v := &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: s.id},
		Spec: v1alpha1.VolumeSpec{
			Driver: v1alpha1.DiskDriverName, Capacity: resource.MustParse("16Mi"), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4,
			PoolClass: "none", Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementNode,
			Replication: v1alpha1.Replication{
				Factor: 2, Kind: v1alpha1.ReplicationAttachments, Failover: &v1alpha1.Failover{Automatic: true},
				Attachments: &v1alpha1.Attachments{MaxShares: 2, Persistent: true, Disk: &v1alpha1.SharedDisk{Handle: "sim:///disk", Identity: diskIdentity}},
			},
		},
	}
	for _, c := range change {
		c(v)
	}
	if err := s.Client.Create(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Client.Delete(context.WithoutCancel(t.Context()), v) })
	for _, node := range []string{alpha, beta} {
		n := &sharing{s: s, name: node + "-" + strings.Trim(name, "-"), dir: t.TempDir(), guard: &sentry{fenced: true}, traffic: &traffic{}}
		s.nodes[node] = n
		n.journal, n.made = journal.Dir(filepath.Join(t.TempDir(), "journal")), made(s, node)
		n.config = s.AgentConfig(t, n.name)
		n.config.Wrap(n.traffic.wrap)
		n.start()
	}
	first := v1alpha1.Epoch{Number: 1, ID: "first"}
	v.Status.Ownership = &v1alpha1.Ownership{
		Epoch: first, Primary: v1alpha1.Primary{Phase: v1alpha1.PrimaryReleased}, Clean: true, Lineage: []v1alpha1.Branch{{Epoch: first}},
	}
	if err := s.oversight.Status().Update(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	return s
}

// others asks the agents of the other nodes, as the peers' client does.
type others struct{ n *sharing }

func (o others) Ask(ctx context.Context, volume string, nodes []string) (out []ownership.Peer) {
	for _, other := range o.n.s.nodes {
		if a := other.agent.Load(); a != nil && slices.Contains(nodes, other.name) {
			if p, may, err := a.Copies().Peer(ctx, volume, o.n.name); may && err == nil {
				out = append(out, p)
			}
		}
	}
	return out
}

// start begins a new life of the node's agent.
func (n *sharing) start() {
	t := n.s.t
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
	d := n.made.SharedDisks
	d.Journal, d.Guard = n.journal, n.guard
	a, err := NewDisk(ctx, Options{
		Driver: driver.Disk(), Node: n.name, Namespace: apitest.Namespace, KubeletDir: n.dir, Mounts: n.made.mounts, ShutDowns: (&staging.ShutDowns{}).Below,
		Config: n.config, CSI: calls, HTTP: probes, Registry: prometheus.NewRegistry(), Peers: others{n},
		Version: "test", Log: logr.Discard(), Clock: clock.RealClock{},
	}, d)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	n.agent.Store(a)
	n.csi, n.http = csi.NewNodeClient(dial(t, calls.Addr().String())), "http://"+probes.Addr().String()
	n.stop = sync.OnceFunc(func() {
		n.agent.Store(nil)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the agent ended with: %v", err)
		}
	})
	t.Cleanup(func() { n.stop() })
}

// sentry is a guard that keeps what it is told. It renews the lease unless it is silent.
type sentry struct {
	mu     sync.Mutex
	fenced bool
	silent bool
	open   []guard.Epoch
}

func (g *sentry) with(f func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return f()
}

func (g *sentry) Open(_ context.Context, e guard.Epoch) (string, error) {
	return "", g.with(func() error {
		if g.fenced || g.silent {
			return &keep.RefusedError{Message: "the guard is fenced"}
		}
		g.open = append(slices.DeleteFunc(g.open, func(o guard.Epoch) bool { return o.Volume == e.Volume }), e)
		return nil
	})
}

func (g *sentry) Close(_ context.Context, e guard.Epoch) error {
	return g.with(func() error {
		g.open = slices.DeleteFunc(g.open, func(o guard.Epoch) bool { return o.Volume == e.Volume })
		return nil
	})
}

func (g *sentry) Closed(context.Context) error {
	return g.with(func() error {
		if len(g.open) > 0 {
			return &keep.RefusedError{Message: "epochs are open"}
		}
		g.fenced = false
		return nil
	})
}

func (g *sentry) Status(context.Context) (out keep.Status, err error) {
	err = g.with(func() error {
		out.Fenced = g.fenced
		if g.silent {
			out.SinceRenewal = time.Hour
		}
		return nil
	})
	return out, err
}

// volume reads the Volume.
func (s *scene) volume() *v1alpha1.Volume {
	s.t.Helper()
	v := &v1alpha1.Volume{}
	if err := s.Client.Get(s.t.Context(), client.ObjectKey{Name: s.id}, v); err != nil {
		s.t.Fatal(err)
	}
	return v
}

// oversees does what a controller does once.
func (s *scene) oversees() {
	s.t.Helper()
	object := s.volume()
	v, err := record.From(object)
	if err != nil {
		return // its first record is not written yet
	}
	f := ownership.ControllerFacts{Now: time.Now(), Record: v, Watching: time.Hour, Proofs: s.proofs}
	for _, n := range s.nodes {
		lost := slices.Contains(s.lost, n.name)
		f.Nodes = append(f.Nodes, ownership.Machine{Name: n.name, Fits: true, Slots: 1, Lost: lost, LostFor: time.Hour})
		if n.name == v.Primary.Node && lost {
			f.SuspectFor = time.Hour
			f.Witnesses = []ownership.Witness{{Name: "x"}, {Name: "y"}}
		}
		a := n.agent.Load()
		if a == nil || lost {
			continue
		}
		p, may, err := a.Copies().Peer(s.t.Context(), s.id, cert.Controllers)
		if err != nil || !may {
			s.t.Fatalf("a controller asks, and is told %v, %v", may, err)
		}
		f.Peers = append(f.Peers, p)
	}
	for _, node := range s.wanted {
		f.Wanted = append(f.Wanted, s.nodes[node].name)
	}
	a := ownership.OverseeRules.Decide(&f)
	if a.Verb != ownership.Record {
		return
	}
	next, err := record.Into(object, a.Next)
	if err == nil {
		err = s.oversight.Status().Update(s.t.Context(), next)
	}
	if err != nil && !apierrors.IsConflict(err) {
		s.t.Fatal(err)
	}
}

// until oversees until something is so.
func (s *scene) until(what string, is func() error) {
	s.t.Helper()
	var last error
	deadline := time.Now().Add(patience)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		s.oversees()
		if last = is(); last == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("waited in vain: %s: %v; the record says %+v", what, last, s.volume().Status.Ownership)
		}
	}
}

func (s *scene) phase() string {
	o := s.volume().Status.Ownership
	node := o.Primary.Node
	for short, n := range s.nodes {
		if n.name == node {
			node = short
		}
	}
	return fmt.Sprintf("%s %s", o.Primary.Phase, node)
}

func (s *scene) says(phase string) func() error {
	return func() error {
		if got := s.phase(); got != phase {
			return fmt.Errorf("it is %s", got)
		}
		return nil
	}
}

func (n *sharing) capability() *csi.VolumeCapability {
	c := &csi.VolumeCapability{
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	}
	if n.s.volume().Spec.VolumeMode == v1alpha1.Block {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
	}
	return c
}

func (n *sharing) staging() string { return filepath.Join(n.dir, "stage") }
func (n *sharing) pod() string     { return filepath.Join(n.dir, "pod") }

func (n *sharing) stages() error {
	_, err := n.csi.NodeStageVolume(n.s.t.Context(), &csi.NodeStageVolumeRequest{VolumeId: n.s.id, StagingTargetPath: n.staging(), VolumeCapability: n.capability()})
	return err
}

func (n *sharing) publishes() error {
	_, err := n.csi.NodePublishVolume(n.s.t.Context(), &csi.NodePublishVolumeRequest{
		VolumeId: n.s.id, StagingTargetPath: n.staging(), TargetPath: n.pod(), VolumeCapability: n.capability(),
	})
	return err
}

func (n *sharing) unpublishes() error {
	_, err := n.csi.NodeUnpublishVolume(n.s.t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: n.s.id, TargetPath: n.pod()})
	return err
}

func (n *sharing) unstages() error {
	_, err := n.csi.NodeUnstageVolume(n.s.t.Context(), &csi.NodeUnstageVolumeRequest{VolumeId: n.s.id, StagingTargetPath: n.staging()})
	return err
}

// begins brings a pod up on a node.
func (s *scene) begins(node string) {
	s.t.Helper()
	n := s.nodes[node]
	s.wanted = []string{node}
	s.until("staged on "+node, n.stages)
	s.until("published on "+node, n.publishes)
}

// standsBy waits until both nodes have the disk, and may take it over.
func (s *scene) standsBy() {
	s.t.Helper()
	s.wanted = []string{alpha, beta}
	s.until("a standby", func() error {
		if e := s.volume().Status.Ownership.Replicas; len(e) != 2 || e[0].State != v1alpha1.OwnedReady || e[1].State != v1alpha1.OwnedReady {
			return errors.New("not yet")
		}
		return nil
	})
}

// ends brings the pod down.
func (s *scene) ends(node string) {
	s.t.Helper()
	n := s.nodes[node]
	s.wanted = nil
	if err := n.unpublishes(); err != nil {
		s.t.Fatal(err)
	}
	s.until("unstaged on "+node, n.unstages)
}
