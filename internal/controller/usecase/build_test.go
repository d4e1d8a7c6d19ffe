package usecase

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
)

const (
	mi = int64(1) << 20
	gi = int64(1) << 30
)

// build makes a Volume of a size, as its options say.
func build(capacity int64, options ...func(*v1alpha1.Volume)) *v1alpha1.Volume {
	v := &v1alpha1.Volume{Spec: v1alpha1.VolumeSpec{
		Capacity: bytes(capacity), VolumeMode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4, PoolClass: "fast",
	}}
	v.Name, v.UID, v.ResourceVersion = "v", "uid", "10"
	v.Labels = map[string]string{}
	for _, option := range options {
		option(v)
	}
	return v
}

func bytes(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

// wanted adds a node to the spec, with its label.
func wanted(node string) func(*v1alpha1.Volume) {
	return func(v *v1alpha1.Volume) {
		v.Spec.Replicas = append(v.Spec.Replicas, v1alpha1.ReplicaSpec{Node: node, Pool: "vg"})
		labelled(node)(v)
	}
}

func labelled(node string) func(*v1alpha1.Volume) {
	return func(v *v1alpha1.Volume) { v.Labels[v1alpha1.ReplicaLabel(node)] = "" }
}

// says adds a node's entry. A capacity of 0 is left out.
func says(node string, state v1alpha1.ReplicaState, reason string, capacity, requested int64) func(*v1alpha1.Volume) {
	return func(v *v1alpha1.Volume) {
		entry := v1alpha1.ReplicaStatus{
			Node: node, Pool: "vg", State: state, Reason: reason, Ready: state == v1alpha1.ReplicaReady,
			Message: "node " + node + ": because",
		}
		if capacity > 0 {
			q := bytes(capacity)
			entry.Capacity = &q
		}
		if requested > 0 {
			q := bytes(requested)
			entry.Requested = &q
		}
		v.Status.Replicas = append(v.Status.Replicas, entry)
	}
}

// fakeNodes maps nodes to why they are away; those that are missing do not exist.
type fakeNodes map[string]string

func (f fakeNodes) Away(node string) string {
	away, exists := f[node]
	if !exists {
		return "the Node does not exist"
	}
	return away
}

func (f fakeNodes) Labelled(label string) string {
	for node := range f {
		if v1alpha1.ReplicaLabel(node) == label {
			return node
		}
	}
	return ""
}
