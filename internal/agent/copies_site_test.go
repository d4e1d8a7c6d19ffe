package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi" //nolint:depguard // the test speaks as the kubelet does
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal"
	"berth.dev/berth/internal/apitest"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/ownership"
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
