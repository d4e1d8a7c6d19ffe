package podlife

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Ended tells whether the pod has completed, or failed for good: its kubelet runs nothing of it any more.
func Ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Begun tells whether a container of the pod has ever run. What was mounted for the pod then, its containers keep,
// whatever is mounted at its path later.
func Begun(p *corev1.Pod) bool {
	if p.Status.Phase == corev1.PodRunning {
		return true
	}
	return slices.ContainsFunc(slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		return c.State.Running != nil || c.State.Terminated != nil || c.RestartCount > 0
	})
}
