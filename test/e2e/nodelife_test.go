//go:build e2e && thorough

package e2e

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// unplug powers a node off and deletes its Node, as an administrator does to give up a
// machine. The node is back when the test ends.
func unplug(b *bench, node string) {
	b.Helper()
	b.lab("power", "off", node)
	b.Cleanup(func() { plugIn(b, node) })
	b.must(b.Delete(b.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}), "deleting the Node")
	b.must(cluster.AwaitGone(b.within(), b.Cluster, &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: node}}), "deleting the node's report")
}

// plugIn starts a node, and waits until its kubelet has registered and its agent reports.
func plugIn(b *bench, node string) {
	b.Helper()
	b.lab("power", "on", node)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	b.must(cluster.Await(b.within(), b.Cluster, n, "ready", ready), "starting the node")
	report := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: node}}
	b.must(cluster.Await(b.within(), b.Cluster, report, "reported", func(n *v1alpha1.StorageNode) bool {
		return len(n.Status.Pools) > 0
	}), "reporting")
}

// awaitMark waits until the condition NodeGone of a Volume has a status and a reason.
func awaitMark(b *bench, v *v1alpha1.Volume, status metav1.ConditionStatus, reason string) {
	b.Helper()
	b.must(cluster.Await(b.within(), b.Cluster, v, reason, func(v *v1alpha1.Volume) bool {
		c := meta.FindStatusCondition(v.Status.Conditions, "NodeGone")
		return c != nil && c.Status == status && c.Reason == reason
	}), "marking the volume")
}

func TestADeletedNodeObjectDeletesNoData(t *testing.T) {
	const node = "node3"
	b := begin(t)
	claim := b.claim("data", classExt4, "128Mi")
	first := b.run("first", claim, cluster.OnNode(node))
	b.sh(first, "echo kept > /data/file && sync")
	volume := b.volumeOf(claim)

	unplug(b, node)
	awaitMark(b, volume, metav1.ConditionTrue, "ClaimKept")
	b.must(cluster.AwaitGone(b.within(), b.Cluster, first), "collecting the pod of a node that is gone")
	if volume.DeletionTimestamp != nil || len(volume.Finalizers) == 0 {
		t.Errorf("the volume goes with its node: %s", b.picture(volume))
	}

	plugIn(b, node)
	if lvs := b.logicalVolumes(node); !slices.Contains(lvs, volume.Name) {
		t.Fatalf("the data is gone: %v", lvs)
	}
	awaitMark(b, volume, metav1.ConditionFalse, "NodeReturned")
	b.reads(b.run("second", claim, cluster.OnNode(node)), "kept")
}

func TestAStatefulSetGetsAnotherVolumeWhenItsNodeIsGone(t *testing.T) {
	b := begin(t)
	p := pools{b}
	class := p.class("released", v1alpha1.PoolClassSpec{
		Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{VolumeGroups: []string{group}},
		OnNodeGone: &v1alpha1.OnNodeGone{Policy: v1alpha1.NodeGoneReleaseClaims, After: &metav1.Duration{Duration: time.Minute}},
	})
	set := statefulSet("db", cluster.Claim(b.namespace, "data-db-0", class, "128Mi"))
	b.create(set)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "db-0"}}
	b.awaitRunning(pod)
	b.sh(pod, "echo first > /data/file && sync")
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "data-db-0"}}
	old := b.volumeOf(claim)
	node := pod.Spec.NodeName
	first := pod.UID

	unplug(b, node)
	awaitMark(b, old, metav1.ConditionTrue, "ReleasePending")
	awaitMark(b, old, metav1.ConditionTrue, "ClaimReleased")
	b.must(cluster.Await(b.within(), b.Cluster, pod, "running elsewhere", func(p *corev1.Pod) bool {
		return p.UID != first && cluster.Running(p) && p.Spec.NodeName != node
	}), "replacing the pod")
	if got := b.sh(pod, "ls /data"); got != "lost+found" {
		t.Errorf("the new volume holds %q", got)
	}
	pv := &corev1.PersistentVolume{}
	b.must(b.Get(b.ctx, client.ObjectKey{Name: old.Name}, pv), "reading the PersistentVolume")
	if pv.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain || pv.DeletionTimestamp != nil {
		t.Errorf("the PersistentVolume goes: %+v", pv)
	}

	plugIn(b, node)
	b.plugin("adopt", node, old.Name, "--claim", "data-old")
	again := b.claim("data-old", class, "128Mi", func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = old.Name })
	b.reads(b.run("reader", again), "first")

	b.remove(set)
	orphans{b}.setPolicy(old.Name, corev1.PersistentVolumeReclaimDelete) // for the end of the test
	p.gone()
	b.must(cluster.AwaitGone(b.within(), b.Cluster, old), "deleting the old volume")
}

// statefulSet describes a StatefulSet of a single pod whose volume is the claim data-NAME-0, made like the given one.
func statefulSet(name string, claim *corev1.PersistentVolumeClaim, opts ...cluster.PodOption) *appsv1.StatefulSet {
	labels := map[string]string{"app": name}
	template := claim.DeepCopy()
	template.ObjectMeta = metav1.ObjectMeta{Name: "data"}
	pod := cluster.Pod(claim.Namespace, name, nil, opts...)
	if isRaw(claim) {
		pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: template.Name, DevicePath: cluster.DevicePath}}
	} else {
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: template.Name, MountPath: cluster.MountPath}}
	}
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: name},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), ServiceName: name, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template:             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod.Spec},
			VolumeClaimTemplates: []corev1.PersistentVolumeClaim{*template},
		},
	}
}

func isRaw(c *corev1.PersistentVolumeClaim) bool {
	return c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == corev1.PersistentVolumeBlock
}
