package volumetest

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
)

// Units of bytes.
const (
	Mi = int64(1) << 20
	Gi = int64(1) << 30
)

// Option changes a Volume that is built.
type Option = func(*v1alpha1.Volume)

// Build makes the Volume v of a size, for an ext4 filesystem, as its options say.
func Build(capacity int64, options ...Option) *v1alpha1.Volume {
	v := &v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{
		Capacity: *quantity(capacity), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, PoolClass: "fast",
	}}
	v.Name, v.UID, v.ResourceVersion = "v", "uid", "10"
	v.Labels = map[string]string{}
	for _, option := range options {
		option(v)
	}
	return v
}

// Wanted adds a node to the spec, with its label.
func Wanted(node string) Option {
	return func(v *v1alpha1.Volume) {
		v.Spec.Replicas = append(v.Spec.Replicas, v1alpha1.ReplicaSpec{Node: node, Pool: "vg"})
		Labelled(node)(v)
	}
}

// Labelled adds the label of a node.
func Labelled(node string) Option {
	return func(v *v1alpha1.Volume) { v.Labels[v1alpha1.ReplicaLabel(node)] = "" }
}

// Says adds a node's entry. A capacity of 0 is left out.
func Says(node string, state v1alpha1.ReplicaState, reason string, capacity, requested int64) Option {
	return func(v *v1alpha1.Volume) {
		entry := v1alpha1.ReplicaStatus{
			Node: node, Pool: "vg", State: state, Reason: reason, Ready: state == v1alpha1.ReplicaReady,
			Message: "node " + node + ": because",
		}
		if capacity > 0 {
			entry.Capacity = quantity(capacity)
		}
		if requested > 0 {
			entry.Requested = quantity(requested)
		}
		v.Status.Replicas = append(v.Status.Replicas, entry)
	}
}

func quantity(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }
