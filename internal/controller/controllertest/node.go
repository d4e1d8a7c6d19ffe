package controllertest

import (
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
	"berth.dev/berth/internal/signal"
)

// Sizes in bytes.
const (
	Mi = int64(1) << 20
	Gi = int64(1) << 30
)

// Pool is the name of every node's one pool: a thin pool, which has snapshots.
const Pool = "vg0/thin"

// Node is a node with one pool and a scripted agent.
type Node struct {
	Name string
	e    *apitest.Environment

	mu sync.Mutex
	// total is the real size of the pool; held is its use by volume id. Both are bytes.
	total int64
	held  map[string]int64
	// inUse devices cannot be removed; mute volumes get no answer.
	inUse, mute map[string]bool
	// failure, if set, is the answer to every request: reason and message.
	failure [2]string
	// copying snapshots are taken but never finish; busy ones cannot be removed.
	copying, busy map[string]bool
	// taken snapshots, by id, with the size of their volume.
	taken map[string]int64
	// refusals counts the requests that the pool had no room for.
	refusals int
	// answered is when the last answer about a volume was sent.
	answered map[string]time.Time
	poke     signal.Signal
}

// NewClass makes a PoolClass of the given name.
func NewClass(t testing.TB, e *apitest.Environment, name string) {
	t.Helper()
	create(t, e, &v1alpha1.PoolClass{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.PoolClassSpec{
			Provisioner: v1alpha1.ProvisionerLVMThin, LVMThin: &v1alpha1.LVMThinPools{ThinPools: []string{Pool}},
			InlineVolumes: &v1alpha1.InlineVolumes{Namespaces: []string{v1alpha1.EveryNamespace}},
		},
	})
}

// NewNode adds a ready node whose agent renews its Lease once, reports a pool of
// the given size for a class, and answers.
func NewNode(t testing.TB, e *apitest.Environment, name, class string, total int64) *Node {
	t.Helper()
	n := &Node{Name: name, e: e, total: total, held: map[string]int64{}, inUse: map[string]bool{}, mute: map[string]bool{}, copying: map[string]bool{}, busy: map[string]bool{}, taken: map[string]int64{}, answered: map[string]time.Time{}, poke: signal.New()}
	config := e.AgentConfig(t, name) // makes the Node
	n.SetReady(t, true)
	create(t, e, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: v1alpha1.AgentLeasePrefix + name},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: new(name), LeaseDurationSeconds: new(int32(40)), RenewTime: &metav1.MicroTime{Time: time.Now()},
		},
	})
	n.Report(t, class, total)
	t.Cleanup(func() { n.remove(t) })
	n.serve(t, config)
	n.serveSnapshots(t, config)
	return n
}

// SetReady sets the Node's condition.
func (n *Node) SetReady(t testing.TB, ready bool) {
	t.Helper()
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	patch(t, n.e, node, func() {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	})
}

// Report writes the StorageNode. The report may differ from the pool.
func (n *Node) Report(t testing.TB, class string, total int64) {
	t.Helper()
	report := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	if err := client.IgnoreAlreadyExists(n.e.Client.Create(t.Context(), report)); err != nil {
		t.Fatal(err)
	}
	patch(t, n.e, report, func() {
		report.Status.Features = v1alpha1.AllFeatures()
		report.Status.Pools = []v1alpha1.Pool{{
			Name: Pool, Provisioner: v1alpha1.ProvisionerLVMThin, Health: v1alpha1.PoolHealthy, Classes: []string{class},
			Total: amount(total), Foreign: amount(0), LargestVolume: amount(total), AllocationUnit: amount(4 * Mi),
		}}
	})
}

// SetOld makes the agent report no features, like an agent that is older than snapshots.
func (n *Node) SetOld(t testing.TB) {
	t.Helper()
	report := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	patch(t, n.e, report, func() { report.Status.Features = nil })
}

// Held is how many bytes the node's pool holds of a volume, or 0.
func (n *Node) Held(volume string) int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.held[volume]
}

// Refusals is how often the node was asked for more than it had.
func (n *Node) Refusals() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.refusals
}

// Answered is when the node's last answer about a volume was sent.
func (n *Node) Answered(volume string) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.answered[volume]
}

// SetInUse opens or closes a volume's device.
func (n *Node) SetInUse(volume string, open bool) { n.change(func() { n.inUse[volume] = open }) }

// SetMute makes the agent ignore a volume, or not.
func (n *Node) SetMute(volume string, mute bool) { n.change(func() { n.mute[volume] = mute }) }

// SetTotal changes the size of the pool, but not its report.
func (n *Node) SetTotal(total int64) { n.change(func() { n.total = total }) }

// SetFailure makes every request fail; an empty reason ends that.
func (n *Node) SetFailure(reason, message string) {
	n.change(func() { n.failure = [2]string{reason, message} })
}

func (n *Node) change(f func()) {
	n.mu.Lock()
	f()
	n.mu.Unlock()
	n.poke.Set()
}

func (n *Node) remove(t testing.TB) {
	for _, object := range []client.Object{
		&v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}},
		&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: apitest.Namespace, Name: v1alpha1.AgentLeasePrefix + n.Name}},
	} {
		destroy(t, n.e, object)
	}
}

func amount(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }
