//go:build e2e && thorough

package e2e

import (
	"bufio"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// shares is how many nodes the disk of the test is attached to: all of the lab's.
const shares = 3

func TestAVolumeOnASharedDiskOutlivesTheNodeThatWritesIt(t *testing.T) {
	b := beginFor(t, 10*limit)
	v, claim := b.sharedDisk("data-db-0", b.unit())
	b.writer("db", claim)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "db-0"}}
	b.awaitRunning(pod)
	first, lost := pod.UID, pod.Spec.NodeName
	b.awaitVolume(v, "ready on all nodes", standbysAreReady)
	acknowledged := b.acknowledges(pod)
	b.eventually("twenty writes are acknowledged", func() bool { return acknowledged.Load() >= 20 })

	steps := &failover{}
	b.lab("power", "off", lost)
	t.Cleanup(func() { b.lab("power", "on", lost) })
	steps.reach("the power is off")
	b.awaitVolume(v, "fenced", func(v *v1alpha1.Volume) bool { return v.Status.Ownership.Primary.Phase == v1alpha1.PrimaryFenced })
	steps.reach("the node is fenced: it provably writes no more")
	b.must(cluster.Await(b.within(), b.Cluster, pod, "bound to another node", func(p *corev1.Pod) bool {
		return p.UID != first && p.Spec.NodeName != "" && p.Spec.NodeName != lost
	}), "replacing the pod")
	steps.reach("its pod has ended, and the next is bound to another node")
	b.awaitVolume(v, "promoted", func(v *v1alpha1.Volume) bool {
		o := v.Status.Ownership
		return o.Primary.Phase == v1alpha1.PrimaryActive && o.Primary.Node == pod.Spec.NodeName
	})
	steps.reach("that node's attachment is the primary")
	b.awaitRunning(pod)
	steps.reach("the pod runs")
	again := b.acknowledges(pod)
	b.eventually("a write is acknowledged again", func() bool { return again.Load() > 0 })
	steps.reach("a write is acknowledged")
	b.isComplete(pod, acknowledged.Load())

	b.lab("power", "on", lost)
	b.eventually("the node has attached the disk again", func() bool { return b.attached(lost, v.Spec.Replication.Attachments.Disk) })
	steps.reach("the node that lost its power is a replica again")
	b.awaitVolume(v, "ready on all nodes", standbysAreReady)
	if on := v.Status.Ownership.Primary.Node; on != pod.Spec.NodeName {
		t.Errorf("the primary is %s, and the pod is on %s", on, pod.Spec.NodeName)
	}
	b.isComplete(pod, acknowledged.Load())
	t.Log("\n" + steps.String())
}

// A target that forgets its reservations when it restarts shuts no writer out, so nothing fails over by itself,
// unless a system says that the power of the node is off. The lab's switch is such a system.
func TestAVolumeWithoutLastingReservationsGoesOnWhenThePowerOfItsNodeIsSaidToBeOff(t *testing.T) {
	b := beginFor(t, 10*limit)
	v, claim := b.sharedDiskOf("data-db-0", b.unit(), false)
	b.writer("db", claim)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "db-0"}}
	b.awaitRunning(pod)
	first, lost := pod.UID, pod.Spec.NodeName
	b.awaitVolume(v, "ready on all nodes", standbysAreReady)
	acknowledged := b.acknowledges(pod)
	b.eventually("a write is acknowledged", func() bool { return acknowledged.Load() > 0 })

	steps := &failover{}
	b.lab("power", "off", lost, "--tell")
	t.Cleanup(func() { b.lab("power", "on", lost) })
	steps.reach("the power is off, and the Node says so")
	b.awaitVolume(v, "fenced", func(v *v1alpha1.Volume) bool { return v.Status.Ownership.Primary.Phase == v1alpha1.PrimaryFenced })
	steps.reach("the node is fenced: it provably writes no more")
	b.must(cluster.Await(b.within(), b.Cluster, pod, "bound to another node", func(p *corev1.Pod) bool {
		return p.UID != first && p.Spec.NodeName != "" && p.Spec.NodeName != lost
	}), "replacing the pod")
	b.awaitRunning(pod)
	again := b.acknowledges(pod)
	b.eventually("a write is acknowledged again", func() bool { return again.Load() > 0 })
	steps.reach("a write is acknowledged")
	b.isComplete(pod, acknowledged.Load())
	t.Log("\n" + steps.String())
}

// failover has the steps of one failover, with the time at which each was reached.
type failover struct {
	names []string
	at    []time.Time
}

func (f *failover) reach(step string) {
	f.names, f.at = append(f.names, step), append(f.at, time.Now())
}

func (f *failover) String() string {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	for i, name := range f.names {
		fmt.Fprintf(w, "%.1f s\t  %s\n", f.at[i].Sub(f.at[0]).Seconds(), name)
	}
	_ = w.Flush()
	return out.String()
}

// isComplete checks that the volume has every record that was acknowledged, in order.
func (b *bench) isComplete(pod *corev1.Pod, acknowledged int64) {
	b.Helper()
	records := strings.Fields(b.sh(pod, "cat /data/log"))
	for i, record := range records {
		if want := strconv.Itoa(i + 1); record != want {
			b.Fatalf("record %d is %q", i+1, record)
		}
	}
	if int64(len(records)) < acknowledged {
		b.Fatalf("of %d acknowledged records %d are left", acknowledged, len(records))
	}
}

// eventually waits for something that no object tells.
func (b *bench) eventually(what string, done func() bool) {
	b.Helper()
	ctx := b.within()
	for !done() {
		select {
		case <-ctx.Done():
			b.Fatalf("waiting until %s: %v", what, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (b *bench) awaitVolume(v *v1alpha1.Volume, what string, cond func(*v1alpha1.Volume) bool) {
	b.Helper()
	err := cluster.Await(b.within(), b.Cluster, v, what, func(v *v1alpha1.Volume) bool { return v.Status.Ownership != nil && cond(v) })
	if err != nil {
		b.Fatalf("%v\n%s", err, b.picture(v))
	}
}

// writer makes a StatefulSet of one pod, which writes into the claim data-NAME-0.
func (b *bench) writer(name string, claim *corev1.PersistentVolumeClaim) {
	b.Helper()
	set := b.statefulSet(name, claim, func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"sh", "-c", counting} })
	b.Cleanup(func() { b.remove(set) })
}

// unit makes a logical unit at the lab's target, and starts the nodes' initiators.
func (b *bench) unit() v1alpha1.SharedDisk {
	b.Helper()
	b.lab("san", "up", "--kind", "lio", "--persist", "--luns", "1", "--size", "256M")
	b.Cleanup(func() { b.lab("san", "down") })
	for _, node := range []string{"node1", "node2", "node3"} {
		b.onNode(node, "sh", "-c", initiator)
	}
	return v1alpha1.SharedDisk{
		Handle:   "iscsi://10.77.0.2/iqn.2026-01.dev.berth.lab:san/1",
		Identity: "naa.6001405beab000100000000000000000",
	}
}

// backing is the file of the logical unit on this machine.
func (b *bench) backing() string {
	b.Helper()
	fields := strings.Fields(b.lab("san", "up", "--kind", "lio", "--persist", "--luns", "1", "--size", "256M"))
	if len(fields) != 2 {
		b.Fatalf("the lab names no file of the logical unit: %q", fields)
	}
	return fields[1]
}

// initiator starts the service that a node of the lab does not start by itself.
const initiator = "pidof iscsid >/dev/null || iscsid; "

// attached asks a node's kernel whether it has a disk. A node that boots does not answer yet.
func (b *bench) attached(node string, disk *v1alpha1.SharedDisk) bool {
	names, err := b.Lab.OnNode(b.within(), node, "sh", "-c", initiator+"cat /sys/block/*/device/wwid 2>/dev/null; true")
	return err == nil && slices.Contains(strings.Fields(names), disk.Identity)
}

// sharedDisk makes a Volume of a disk, as an administrator does, and a claim for it.
func (b *bench) sharedDisk(claim string, disk v1alpha1.SharedDisk, opts ...cluster.ClaimOption) (*v1alpha1.Volume, *corev1.PersistentVolumeClaim) {
	b.Helper()
	return b.sharedDiskOf(claim, disk, true, opts...)
}

// sharedDiskOf makes the same of a disk that keeps reservations through a restart of its target, or does not.
func (b *bench) sharedDiskOf(claim string, disk v1alpha1.SharedDisk, persistent bool, opts ...cluster.ClaimOption) (*v1alpha1.Volume, *corev1.PersistentVolumeClaim) {
	b.Helper()
	const size = "256Mi"
	c := cluster.Claim(b.namespace, claim, "", size, opts...)
	mode, fs := v1alpha1.Filesystem, v1alpha1.Ext4
	if isRaw(c) {
		mode, fs = v1alpha1.Block, ""
	}
	v := &v1alpha1.Volume{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeName(b.namespace + "-" + claim)},
		Spec: v1alpha1.VolumeSpec{
			Driver: v1alpha1.DiskDriverName, Capacity: resource.MustParse(size), VolumeMode: mode, FSType: fs,
			PoolClass: "none", Sharing: v1alpha1.Exclusive, Placement: v1alpha1.PlacementVolume,
			Replication: v1alpha1.Replication{
				Factor: shares, Kind: v1alpha1.ReplicationAttachments, Failover: &v1alpha1.Failover{Automatic: true},
				Attachments: &v1alpha1.Attachments{MaxShares: shares, Persistent: persistent, Disk: &disk},
			},
		},
	}
	c.Spec.VolumeName = v.Name
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}, AccessModes: c.Spec.AccessModes, VolumeMode: c.Spec.VolumeMode,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			ClaimRef:                      &corev1.ObjectReference{Namespace: b.namespace, Name: claim},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: v1alpha1.DiskDriverName, VolumeHandle: v.Name, FSType: string(fs),
			}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: v1alpha1.VolumeLabelPrefix + v.Name, Operator: corev1.NodeSelectorOpIn, Values: []string{"true"},
				}},
			}}}},
		},
	}
	b.create(v, pv, c)
	b.Cleanup(func() {
		b.remove(c)
		b.remove(pv)
		b.remove(v) // once the disk is attached to no node
	})
	return v, c
}

// standbysAreReady tells whether a volume has an owner, and a ready attachment on each node.
func standbysAreReady(v *v1alpha1.Volume) bool {
	o := v.Status.Ownership
	if o == nil || o.Primary.Phase != v1alpha1.PrimaryActive {
		return false
	}
	ready := 0
	for _, r := range o.Replicas {
		if r.State == v1alpha1.OwnedReady {
			ready++
		}
	}
	return ready == shares
}

// counting appends a number each time to a file, has it reach the disk, and only then says so.
const counting = `n=$(tail -n 1 /data/log 2>/dev/null); n=${n:-0}
trap 'exit 0' TERM
while :; do
  n=$((n+1))
  echo $n | dd of=/data/log oflag=append conv=notrunc,fsync 2>/dev/null || exit 1
  echo $n
done`

// acknowledges reads what a pod says, and keeps the last number that it acknowledged.
func (b *bench) acknowledges(p *corev1.Pod) *atomic.Int64 {
	b.Helper()
	set, err := kubernetes.NewForConfig(b.Config)
	b.must(err, "connecting")
	stream, err := set.CoreV1().Pods(p.Namespace).GetLogs(p.Name, &corev1.PodLogOptions{Follow: true}).Stream(b.ctx)
	b.must(err, "following the pod's log")
	var last atomic.Int64
	go func() {
		lines := bufio.NewScanner(stream)
		for lines.Scan() {
			if n, err := strconv.ParseInt(lines.Text(), 10, 64); err == nil {
				last.Store(n)
			}
		}
	}()
	b.Cleanup(func() { _ = stream.Close() })
	return &last
}
