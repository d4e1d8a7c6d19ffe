package volumes_test

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase/volumes"
	"berth.dev/berth/internal/usecase/volumetest"
)

func poolClass() *v1alpha1.PoolClass {
	c := &v1alpha1.PoolClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}
	c.Spec.Provisioner = v1alpha1.ProvisionerLVM
	return c
}

func storageNode(name string) *v1alpha1.StorageNode {
	n := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Features = v1alpha1.AllFeatures()
	n.Status.Pools = []v1alpha1.Pool{{
		Name: "vg", Provisioner: v1alpha1.ProvisionerLVM, Health: v1alpha1.PoolHealthy, Classes: []string{"fast"},
		Total: *bytes(10 * gi), AllocationUnit: *bytes(volumetest.Mi),
	}}
	n.Status.Pools = append(n.Status.Pools, v1alpha1.Pool{Name: "other", Provisioner: v1alpha1.ProvisionerLVM, Health: v1alpha1.PoolHealthy, Total: *bytes(gi)})
	return n
}

func bytes(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }

// request is for 1Gi of the class fast, on the allowed nodes.
func request(allowed ...string) volumes.Request {
	return volumes.Request{
		Name: id, Size: volumes.Size{Required: gi}, Mode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, PoolClass: "fast",
		Claim:    &v1alpha1.ClaimReference{Namespace: "shop", Name: "data"},
		Topology: volumes.Topology{Allowed: allowed},
	}
}

func reservation(allowed ...string) volumes.Request {
	r := request(allowed...)
	r.Reservation = true
	return r
}

// existing is the volume of request, as options say.
func existing(options ...volumetest.Option) *v1alpha1.Volume {
	v := volumetest.Build(gi, options...)
	v.Name, v.Finalizers = id, []string{v1alpha1.VolumeFinalizer}
	v.Spec.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: "data", UID: types.UID(id[len("pvc-"):])}
	return v
}

var wanted, says = volumetest.Wanted, volumetest.Says

// carved is the answer of a node that has the volume as the spec asks.
func carved(node string) volumetest.Option {
	return says(node, v1alpha1.ReplicaReady, v1alpha1.ReasonCarved, gi, gi)
}

func reserved(v *v1alpha1.Volume) {
	v.Annotations = map[string]string{v1alpha1.ReservedAnnotation: ""}
}

func deleting(v *v1alpha1.Volume) {
	v.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
}

// carves is an agent that makes the volume as the spec asks.
func carves(v *v1alpha1.Volume) v1alpha1.ReplicaStatus {
	r := v.Spec.Replicas[0]
	return v1alpha1.ReplicaStatus{
		Node: r.Node, Pool: r.Pool, State: v1alpha1.ReplicaReady, Ready: true, Reason: v1alpha1.ReasonCarved,
		Capacity: &v.Spec.Capacity, Requested: &v.Spec.Capacity,
	}
}

// refuses is an agent that answers with a reason.
func refuses(reason string) agent {
	return func(v *v1alpha1.Volume) v1alpha1.ReplicaStatus {
		r := v.Spec.Replicas[0]
		return v1alpha1.ReplicaStatus{
			Node: r.Node, Pool: r.Pool, State: v1alpha1.ReplicaFailed, Reason: reason, Message: "because", Requested: &v.Spec.Capacity,
		}
	}
}

func persistentVolume() *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: id}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: id}
	return pv
}
