package shell

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/journal/journaltest"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/simdisk"
)

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}()

// world is a cluster in one process, under virtual time.
type world struct {
	t       *testing.T
	seed    uint64
	ctx     context.Context
	mistake *mistake
	plan    plan
	driver  driver.Driver
	plot    *plot
	singles *strikes
	*tale

	api         *api
	machines    []*machine
	volumes     []*volume
	controllers []*controller
	oracle      *oracle
	// persistent: the targets keep reservations through a loss of power.
	persistent bool
	// calm: all faults have ended. ended: so has the schedule.
	calm, ended atomic.Bool

	mu           sync.Mutex
	slow         time.Duration     // the most that the API server takes
	hit          time.Time         // until when a fault hits what all machines share
	said         map[string]string // the last refusal of a call, by machine and volume
	broke, lived time.Duration
	counted      int // pods that were made
}

// volume is a shared disk, or copies in pools, with its claim and the workload that wants one pod of it at a time.
type volume struct {
	name, short, device string
	identity            provision.Identity
	disk                shared.Disk
	// target of the shared disk; nil for copies.
	target *simdisk.Target
}

// at is what holds the volume's bytes for a machine.
func (v *volume) at(m *machine) backing {
	if v.target == nil {
		return &head{m: m, v: v}
	}
	return attachment{v.target.Node(m.name), m, v}
}

func (w *world) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) fail(format string, args ...any) {
	w.oracle.mu.Lock()
	defer w.oracle.mu.Unlock()
	w.oracle.fails(format, args...)
}

func (w *world) broken() string {
	w.oracle.mu.Lock()
	defer w.oracle.mu.Unlock()
	return w.oracle.violation
}

// class is the promise that was broken, without names; empty if none was.
func (w *world) class() string {
	w.oracle.mu.Lock()
	defer w.oracle.mu.Unlock()
	return w.oracle.class
}

func (w *world) over() bool { return w.ended.Load() }

func (w *world) count(what string) {
	w.oracle.mu.Lock()
	defer w.oracle.mu.Unlock()
	w.oracle.counts[what]++
}

func (w *world) troubled() bool { return !w.calm.Load() }

// rare is one in how many effects fails.
func (w *world) rare(by way) int {
	if by == local {
		return 60 * w.plan.calm
	}
	return 25 * w.plan.calm
}

// latency is how long an effect takes on its way.
func (w *world) latency(d *dice, by way, _ *machine) time.Duration {
	switch by {
	case toAPI:
		slow := time.Duration(0)
		w.locked(func() { slow = w.slow })
		if slow > 0 && d.chance(3) {
			return d.upTo(slow)
		}
		return d.upTo(20 * time.Millisecond)
	case toSAN:
		return d.upTo(3 * time.Millisecond)
	}
	return d.upTo(time.Millisecond)
}

func (w *world) machine(name string) *machine {
	for _, m := range w.machines {
		if m.name == name {
			return m
		}
	}
	return nil
}

// note keeps why a kubelet's call failed, for people.
func (w *world) note(m *machine, v *volume, err error) {
	w.locked(func() { w.said[m.name+" "+v.short] = err.Error() })
}

// newWorld makes a cluster in which nothing has happened yet.
func newWorld(t *testing.T, seed uint64, p plan, x *mistake) *world {
	w := &world{t: t, seed: seed, tale: &tale{began: time.Now(), how: p.told}, mistake: x, plan: p, singles: newStrikes(&p), said: map[string]string{}, persistent: p.persistent, controllers: make([]*controller, p.controllers)}
	w.ctx, w.driver = t.Context(), p.driver()
	w.oracle, w.api = newOracle(w), newAPI(w)
	w.plot = newPlot(w)
	for i := range p.volumes {
		w.volumes = append(w.volumes, w.volumeOf(i))
	}
	for i := range p.nodes {
		m := &machine{w: w, name: string(rune('a' + i)), disk: journaltest.New(), dirs: map[string]bool{}, memo: memo{last: map[string]reading{}}}
		if p.copies {
			m.pool = memory.NewDisks(memory.PoolConfig{PoolRef: poolOf, Total: 64 << 30})
		}
		w.machines = append(w.machines, m)
		w.joins(m)
	}
	for _, m := range w.machines {
		m.powersOn()
	}
	w.replaced()
	return w
}

// makes creates an object.
func (w *world) makes(o client.Object) {
	if err := w.api.create(o); err != nil {
		panic(err)
	}
}

const shop = "shop"

func (w *world) volumeOf(i int) *volume {
	v := &volume{name: fmt.Sprintf("pvc-00000000-0000-0000-0000-%012d", i+1), short: fmt.Sprint("v", i+1), device: fmt.Sprint("8:", i+1)}
	spec := v1alpha1.VolumeSpec{
		Driver: w.driver.Name, Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4,
		PoolClass: "none", Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
	}
	if w.plan.copies {
		v.identity = provision.Identity("memory:" + v.name)
		w.replicates(&spec)
	} else {
		v.identity = provision.Identity("wwn:" + v.short)
		v.disk = shared.Disk{Volume: v.name, Handle: "sim:///" + v.short, Identity: v.identity, Persistent: w.persistent}
		v.target = simdisk.New(simdisk.Config{Identity: v.identity, Shares: w.plan.shares, Persistent: w.persistent, Late: w.plan.late, Known: w.plan.known})
		spec.Replication = v1alpha1.Replication{
			Factor: int32(min(2, w.plan.shares)), Kind: v1alpha1.ReplicationAttachments, Failover: &v1alpha1.Failover{Automatic: true},
			Attachments: &v1alpha1.Attachments{MaxShares: int32(w.plan.shares), Persistent: w.persistent, Disk: &v1alpha1.SharedDisk{Handle: v.disk.Handle, Identity: string(v.identity)}},
		}
		if w.plan.together {
			v.disk.ManyWriters = true
			spec.Sharing, spec.VolumeMode, spec.FSType, spec.Replication.Factor = v1alpha1.Shared, v1alpha1.Block, "", 1
		}
	}
	w.makes(&v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: v.name}, Spec: spec})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: shop, Name: v.short}, Spec: corev1.PersistentVolumeClaimSpec{VolumeName: v.name}}
	w.makes(claim)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: v.name}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: w.driver.Name, VolumeHandle: v.name}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: shop, Name: v.short, UID: claim.UID}
	pv.Spec.NodeAffinity = w.driver.Affinity(v.name)
	w.makes(pv)
	return v
}

// joins makes the objects of a machine.
func (w *world) joins(m *machine) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.name}}
	n.Status.NodeInfo.SystemUUID = "machine-of-" + m.name
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.makes(n)
	w.makes(&v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: m.name}})
	w.makes(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: m.name}, Spec: storagev1.CSINodeSpec{
		Drivers: []storagev1.CSINodeDriver{{Name: w.driver.Name, NodeID: m.name, Allocatable: &storagev1.VolumeNodeResources{Count: new(int32(w.plan.slots))}}},
	}})
	now := &metav1.MicroTime{Time: time.Now()}
	for _, key := range []client.ObjectKey{{Namespace: corev1.NamespaceNodeLease, Name: m.name}, {Namespace: namespace, Name: v1alpha1.AgentLeasePrefix + m.name}} {
		_ = w.api.create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Spec: coordinationv1.LeaseSpec{RenewTime: now}}) // an agent's Lease outlives the Node
	}
}

// ends ends every process.
func (w *world) ends() {
	w.ended.Store(true)
	for _, m := range w.machines {
		m.wakes()
		m.powersOff()
	}
	for _, c := range w.controllers {
		if c != nil {
			c.p.dies()
		}
	}
}

// volumeOf is the volume that a pod uses.
func volumeOf(p *corev1.Pod) string { return p.Labels["volume"] }

// short is the name of a volume in a story.
func (w *world) short(name string) string { return "v" + name[len(name)-1:] }

// pods are those that use a volume, in order.
func (w *world) pods(v *volume) (pods []*corev1.Pod) {
	for _, o := range w.api.all(kindOf(&corev1.Pod{})) {
		if p := o.(*corev1.Pod); volumeOf(p) == v.name {
			pods = append(pods, p)
		}
	}
	return slices.Clip(pods)
}
