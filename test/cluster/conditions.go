package cluster

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Running says whether a pod runs and is ready.
func Running(p *corev1.Pod) bool {
	if p.Status.Phase != corev1.PodRunning {
		return false
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// Bound says whether a claim has its volume.
func Bound(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound }

// HasCapacity says whether a claim has grown to a size.
func HasCapacity(size string) func(*corev1.PersistentVolumeClaim) bool {
	want := resource.MustParse(size)
	return func(c *corev1.PersistentVolumeClaim) bool {
		got := c.Status.Capacity[corev1.ResourceStorage]
		return got.Cmp(want) >= 0
	}
}

// CapacityOf says whether a published capacity is for a node and a class.
func CapacityOf(node, class string, c *storagev1.CSIStorageCapacity) bool {
	return c.StorageClassName == class && c.NodeTopology != nil && c.NodeTopology.MatchLabels["topology.berth.dev/node"] == node
}
