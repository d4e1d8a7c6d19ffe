package gonetest

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

const (
	// Node that is gone, ID of the volume on it, and Delay after which its claim is released.
	Node  = "n1"
	ID    = "pvc-00000000-0000-0000-0000-000000000001"
	Delay = time.Hour
)

// Start is when the tests begin. The Node went then, unless a test says otherwise.
var Start = time.Unix(1_000_000, 0)

// Volume is one whose only copy is on Node. Its class is "fast".
func Volume() *v1alpha1.Volume {
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{
		Name: ID, UID: "v", Finalizers: []string{v1alpha1.VolumeFinalizer}, Labels: map[string]string{v1alpha1.ReplicaLabel(Node): ""},
	}}
	v.Spec.PoolClass, v.Spec.Replication.Factor = "fast", 1
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: Node, Pool: "vg0"}}
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: Node, Pool: "vg0", State: v1alpha1.ReplicaReady, Ready: true}}
	return v
}

// Class is the class "fast", with a policy for nodes that are Node.
func Class(policy v1alpha1.NodeGonePolicy) *v1alpha1.PoolClass {
	c := &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
	c.Spec.OnNodeGone = &v1alpha1.OnNodeGone{Policy: policy, After: &metav1.Duration{Duration: Delay}}
	return c
}

// PersistentVolume is that of the volume, bound to the claim.
func PersistentVolume() *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: ID, UID: "pv"}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: ID}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "db-0", UID: "claim"}
	return pv
}

// Claim is shop/db-0, bound to the PersistentVolume.
func Claim() *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0", UID: "claim"}}
	c.Spec.VolumeName = ID
	return c
}

// On is a Volume of a node, with a mark that is so old at Start; no mark if the reason is empty.
func On(node string, status metav1.ConditionStatus, reason string, age time.Duration) v1alpha1.Volume {
	v := Volume()
	v.Spec.Replicas[0].Node = node
	if reason != "" {
		v.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionNodeGone, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(Start.Add(-age))}}
	}
	return *v
}
