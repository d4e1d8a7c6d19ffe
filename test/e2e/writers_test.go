//go:build e2e && thorough

package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// countingApart has each pod write a number of its own, beginning with the one that it finds. A number is a sector, and those of two
// pods are a mebibyte apart. A number that the pod says has reached the disk.
const countingApart = `at=$(( ${HOSTNAME##*-} * 2048 ))
n=$(dd if=` + cluster.DevicePath + ` bs=512 skip=$at count=1 2>/dev/null | tr -d '\000 \n'); n=${n:-0}
trap 'exit 0' TERM
while :; do
  n=$((n+1))
  printf '%-511s\n' $n | dd of=` + cluster.DevicePath + ` bs=512 seek=$at conv=notrunc,fsync 2>/dev/null || exit 1
  echo $n
done`

// The node that is lost sleeps, and wakes in the middle of a write. The target's file is read on this machine, without
// the product's code.
func TestSeveralNodesWriteADiskAndTheOneThatIsLostIsShutOut(t *testing.T) {
	b := beginFor(t, 10*limit)
	s := newSAN(b)
	file := s.backing()
	class := pools{b}.storageClass("many", func(sc *storagev1.StorageClass) {
		sc.Provisioner, sc.VolumeBindingMode = v1alpha1.DiskDriverName, ptr.To(storagev1.VolumeBindingImmediate)
		sc.Parameters = map[string]string{"poolClass": b.namespace, "maxShares": "3", "maxMountReplicaCount": "0"}
	})
	lun := &v1alpha1.LUN{
		ObjectMeta: metav1.ObjectMeta{Name: "array-" + b.namespace},
		Spec:       v1alpha1.LUNSpec{Disk: s.disk, Capacity: resource.MustParse("256Mi"), PoolClass: b.namespace, Persistent: true},
	}
	b.create(lun)
	t.Cleanup(func() { b.remove(lun) })
	claim := b.claim("shared", class, "200Mi", cluster.Raw, func(c *corev1.PersistentVolumeClaim) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	})
	t.Cleanup(func() { b.remove(claim) })
	set := apart("many", claim)
	b.create(set)
	t.Cleanup(func() { b.remove(set) })

	pods := make([]*corev1.Pod, 2)
	for i := range pods {
		pods[i] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: fmt.Sprintf("many-%d", i)}}
		b.awaitRunning(pods[i])
	}
	lost, other := s.acknowledges(pods[0]), s.acknowledges(pods[1])
	b.eventually("both nodes write", func() bool { return lost.Load() > 5 && other.Load() > 5 })
	first, node := pods[0].UID, pods[0].Spec.NodeName
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + string(claim.UID)}}

	b.lab("pause", node)
	resume := func() { b.lab("resume", node) }
	t.Cleanup(resume)
	s.awaitVolume(v, "fenced on the node that sleeps", func(v *v1alpha1.Volume) bool { return phaseOf(v, node) == v1alpha1.PrimaryFenced })
	at := other.Load()
	b.eventually("the other node writes on", func() bool { return other.Load() > at+5 })
	b.must(cluster.Await(b.within(), b.Cluster, pods[0], "bound to a third node", func(p *corev1.Pod) bool {
		return p.UID != first && p.Spec.NodeName != "" && p.Spec.NodeName != node && p.Spec.NodeName != pods[1].Spec.NodeName
	}), "replacing the pod")
	b.awaitRunning(pods[0])
	next := s.acknowledges(pods[0])
	b.eventually("the pod writes on where it was", func() bool { return next.Load() > lost.Load() })

	resume()
	ctx, cancel := context.WithTimeout(b.ctx, again)
	defer cancel()
	b.must(cluster.Await(ctx, b.Cluster, v, "given up by the node that slept", func(v *v1alpha1.Volume) bool { return saysStopped(v, node) }), "waiting for the node, whose watchdog resets it")
	for i, acknowledged := range []int64{next.Load(), other.Load()} {
		if n := number(t, file, i); n < acknowledged {
			t.Errorf("pod %d has acknowledged %d, and the disk has %d: a node that was shut out has written", i, acknowledged, n)
		}
	}
	at, now := other.Load(), next.Load()
	b.eventually("both nodes write on", func() bool { return other.Load() > at && next.Load() > now })
}

// apart describes a StatefulSet of two pods that use one claim on two nodes.
func apart(name string, claim *corev1.PersistentVolumeClaim) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	pod := cluster.Pod(claim.Namespace, name, []*corev1.PersistentVolumeClaim{claim}, func(p *corev1.Pod) {
		p.Spec.Containers[0].Command = []string{"sh", "-c", countingApart}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: labels}},
		}}}
	})
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(2)), ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels}, PodManagementPolicy: appsv1.ParallelPodManagement,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
		},
	}
}

// phaseOf is how far a node's right to write has come; empty if it has none.
func phaseOf(v *v1alpha1.Volume, node string) v1alpha1.PrimaryPhase {
	for _, w := range v.Status.Ownership.Writers {
		if w.Node == node {
			return w.Phase
		}
	}
	return ""
}

// saysStopped tells whether a node has said that it writes no more in the epoch in which it was fenced, or has none any more.
func saysStopped(v *v1alpha1.Volume, node string) bool {
	for _, w := range v.Status.Ownership.Writers {
		if w.Node != node {
			continue
		}
		for _, r := range v.Status.Ownership.Replicas {
			if r.Node == node {
				return w.Phase != v1alpha1.PrimaryFenced || r.Unstaged != nil && *r.Unstaged == w.Epoch
			}
		}
	}
	return true
}

// number is the one of a pod as the target's file has it now. A write that is under way may leave half of a sector.
func number(t *testing.T, file string, pod int) int64 {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sector := make([]byte, 512)
	for deadline := time.Now().Add(limit); ; {
		if _, err := f.ReadAt(sector, int64(pod)<<20); err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(sector)), 10, 64)
		if err == nil {
			return n
		}
		if time.Now().After(deadline) {
			t.Fatalf("the sector of pod %d is %q", pod, sector)
		}
	}
}
