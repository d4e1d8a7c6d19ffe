package nodegone

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

const (
	gone = "n1"
	id   = "pvc-00000000-0000-0000-0000-000000000001"
	hour = time.Hour
)

// start is when the tests begin. The Node went then, unless a test says otherwise.
var start = time.Unix(1_000_000, 0)

type option func(*Facts)

// facts describe a volume whose only copy is on n1. It is bound to the claim shop/db-0, and its
// class releases claims after an hour. n1 is gone, alone of ten nodes, and no step was taken yet.
func facts(options ...option) Facts {
	f := Facts{
		Volume: volume(), Node: gone, Class: class(v1alpha1.NodeGoneReleaseClaims), PersistentVolume: persistentVolume(), Claim: claim(),
		Crowd: Crowd{Gone: 1, Known: 10}, Now: start,
	}
	for _, o := range options {
		o(&f)
	}
	return f
}

func volume() *v1alpha1.Volume {
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{
		Name: id, UID: "v", Finalizers: []string{v1alpha1.VolumeFinalizer}, Labels: map[string]string{v1alpha1.ReplicaLabel(gone): ""},
	}}
	v.Spec.PoolClass, v.Spec.Replication.Factor = "fast", 1
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: gone, Pool: "vg0"}}
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: gone, Pool: "vg0", State: v1alpha1.ReplicaReady, Ready: true}}
	return v
}

func class(policy v1alpha1.NodeGonePolicy) *v1alpha1.PoolClass {
	c := &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
	c.Spec.OnNodeGone = &v1alpha1.OnNodeGone{Policy: policy, After: &metav1.Duration{Duration: hour}}
	return c
}

func persistentVolume() *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: id, UID: "pv"}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: id}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "db-0", UID: "claim"}
	return pv
}

func claim() *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0", UID: "claim"}}
	c.Spec.VolumeName = id
	return c
}

// says marks the volume as of the start.
func says(status metav1.ConditionStatus, reason string) option {
	return func(f *Facts) {
		m := metav1.Condition{Type: v1alpha1.ConditionNodeGone, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(start)}
		if reason == v1alpha1.ReasonReleasePending {
			m.Message = f.pending(start.Add(hour))
		}
		f.Volume.Status.Conditions = []metav1.Condition{m}
	}
}

// after lets time pass, all of which this process has seen.
func after(d time.Duration) option {
	return func(f *Facts) {
		f.Now = start.Add(d)
		f.Watched = Watched{For: d, Whole: true}
	}
}

// restarted is a process that has seen only the last part of the absence.
func restarted(seen time.Duration) option {
	return func(f *Facts) { f.Watched = Watched{For: seen} }
}

func present(f *Facts) { f.Present = true }

func retained(f *Facts) {
	f.PersistentVolume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
}

func unclaimed(f *Facts) { f.Claim = nil }

func deletedClaim(f *Facts) { f.Claim.DeletionTimestamp = &metav1.Time{Time: start} }

func crowded(f *Facts) { f.Crowd = Crowd{Gone: 4, Known: 100} }

func keeping(f *Facts) { f.Class = class(v1alpha1.NodeGoneKeep) }
