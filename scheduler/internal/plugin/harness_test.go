package plugin

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	backendcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultbinder"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/queuesort"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	testframework "k8s.io/kubernetes/pkg/scheduler/testing/framework"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/usecase/volumes"
)

func TestMain(m *testing.M) {
	metrics.Register()
	os.Exit(m.Run())
}

// objects are the objects that a pod may name.
type objects struct {
	claims  map[string]*corev1.PersistentVolumeClaim
	pvs     map[string]*corev1.PersistentVolume
	classes map[string]*storagev1.StorageClass
	volumes map[string]*v1alpha1.Volume
	// snapshots are on one node each, by their name in the cluster.
	snapshots map[string]string
}

func (o *objects) Claim(_ context.Context, _, name string) (*corev1.PersistentVolumeClaim, error) {
	return o.claims[name], nil
}
func (o *objects) PersistentVolume(_ context.Context, name string) (*corev1.PersistentVolume, error) {
	return o.pvs[name], nil
}
func (o *objects) StorageClass(_ context.Context, name string) (*storagev1.StorageClass, error) {
	return o.classes[name], nil
}
func (o *objects) PoolClass(context.Context, string) (*v1alpha1.PoolClass, error) { return nil, nil }
func (o *objects) Volume(_ context.Context, name string) (*v1alpha1.Volume, error) {
	return o.volumes[name], nil
}

func (o *objects) VolumeSnapshot(_ context.Context, namespace, name string) (*schedule.VolumeSnapshot, error) {
	if _, exists := o.snapshots[name]; !exists {
		return nil, nil
	}
	return &schedule.VolumeSnapshot{Namespace: namespace, Name: name, Ready: true, Driver: v1alpha1.LocalDriverName, Handle: snapshotID}, nil
}

// snapshotID is the id of every snapshot.
const snapshotID = "snap-00000000-0000-0000-0000-000000000000"

func (o *objects) Snapshot(context.Context, string) (*v1alpha1.Snapshot, error) {
	s := &v1alpha1.Snapshot{}
	for _, node := range o.snapshots {
		s.Spec.Replicas = append(s.Spec.Replicas, v1alpha1.ReplicaSpec{Node: node, Pool: "vg0"})
		s.Status.Replicas = append(s.Status.Replicas, v1alpha1.SnapshotReplica{Node: node, State: v1alpha1.SnapshotReady})
	}
	return s, nil
}

func (o *objects) placed(_ context.Context, name string) ([]string, error) {
	if v := o.volumes[name]; v != nil {
		return []string{v.Spec.Replicas[0].Node}, nil
	}
	return nil, nil
}

// creator answers Create by the volume's name; without an answer it accepts.
type creator struct {
	mu      sync.Mutex
	made    map[string]string // volume: node/pool
	answers map[string]error
	mute    bool
}

func (c *creator) Create(ctx context.Context, r volumes.Request) (volumes.Volume, error) {
	if c.mute {
		<-ctx.Done()
		return volumes.Volume{}, fmt.Errorf("waiting for the node: %w", ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.answers[r.Name]; err != nil {
		return volumes.Volume{}, err
	}
	c.made[r.Name] = strings.Join(r.Topology.Allowed, ",") + "/" + r.Pool
	return volumes.Volume{ID: r.Name}, nil
}

func (c *creator) Abandon(_ context.Context, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.made, name)
	return nil
}

// cluster is a scheduler's view of a cluster, with one profile.
type cluster struct {
	*Plugin
	framework.Framework
	ledger  *ledger.Ledger
	objects *objects
	creator *creator
	nodes   map[string]*corev1.Node
	running map[string][]*corev1.Pod // by node
}

// newCluster has the class "fast" of two pools, vg0 and vg1, on each node named.
func newCluster(t testing.TB, nodes ...nodeSpec) *cluster {
	t.Helper()
	c := &cluster{
		ledger:  ledger.New(),
		objects: &objects{map[string]*corev1.PersistentVolumeClaim{}, map[string]*corev1.PersistentVolume{}, map[string]*storagev1.StorageClass{}, map[string]*v1alpha1.Volume{}, map[string]string{}},
		creator: &creator{made: map[string]string{}, answers: map[string]error{}},
		nodes:   map[string]*corev1.Node{}, running: map[string][]*corev1.Pod{},
	}
	must(t, c.ledger.ObserveClass(ledger.Class{Name: "fast", InlineNamespaces: []string{"*"}}))
	for _, n := range nodes {
		c.report(t, n)
	}
	c.ledger.SetSynced()
	c.storageClass("fast", storagev1.VolumeBindingWaitForFirstConsumer)
	c.Plugin = &Plugin{Driver: driver.Local(), Book: c.ledger, Reader: schedule.Reader{Driver: driver.Local(), Objects: c.objects}, Volumes: c.creator, Placed: c.objects.placed, Refusals: NewRefusals(func() {}), Lifetime: t.Context()}
	c.Framework = c.profile(t)
	return c
}

func (c *cluster) profile(t testing.TB) framework.Framework {
	t.Helper()
	ours := func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return c.Plugin, nil }
	f, err := testframework.NewFramework(t.Context(), []testframework.RegisterPluginFunc{
		testframework.RegisterQueueSortPlugin(queuesort.Name, queuesort.New),
		testframework.RegisterBindPlugin(defaultbinder.Name, defaultbinder.New),
		testframework.RegisterPluginAsExtensions(Name, ours, "PreFilter", "Filter", "PreScore", "Score", "Reserve", "PreBind"),
	}, "berth-scheduler", frameworkruntime.WithSnapshotSharedLister(c.snapshot()))
	must(t, err)
	return f
}

func (c *cluster) snapshot() *backendcache.Snapshot {
	var pods []*corev1.Pod
	for _, node := range slices.Sorted(maps.Keys(c.running)) {
		pods = append(pods, c.running[node]...)
	}
	return backendcache.NewSnapshot(pods, slices.Collect(maps.Values(c.nodes)))
}

// report makes the Node and observes its report.
func (c *cluster) report(t testing.TB, n nodeSpec) {
	t.Helper()
	c.nodes[n.name] = &corev1.Node{}
	c.nodes[n.name].Name = n.name
	r := ledger.Report{Node: n.name, Ready: !n.silent}
	for i, total := range n.pools {
		r.Pools = append(r.Pools, ledger.Pool{
			Name: fmt.Sprintf("vg%d", i), Kind: ledger.Thick, Total: total, Unit: 4 << 20, Classes: []string{"fast"},
		})
	}
	must(t, c.ledger.ObserveNode(r))
}

func (c *cluster) info(node string) fwk.NodeInfo {
	info := framework.NewNodeInfo(c.running[node]...)
	info.SetNode(c.nodes[node])
	return info
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
