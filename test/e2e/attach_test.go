//go:build e2e && thorough

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/test/cluster"
)

// The chart must be installed with disk.attachRequired.
func TestASharedDiskWithVolumeAttachmentsFollowsItsPod(t *testing.T) {
	b := beginFor(t, 5*limit)
	s := newSAN(b)
	v, claim := s.volume("data-db-0")
	s.writer("db", claim)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "db-0"}}
	b.awaitRunning(pod)
	first, from := pod.UID, pod.Spec.NodeName
	if on := attachedTo(b, v.Name); len(on) != 1 || on[0] != from {
		t.Errorf("the pod is on %s, and VolumeAttachments are for %q", from, on)
	}
	s.awaitVolume(v, "ready on all nodes", standbysAreReady)
	acknowledged := s.acknowledges(pod)
	b.eventually("twenty writes are acknowledged", func() bool { return acknowledged.Load() >= 20 })

	cordon(b, from, true)
	t.Cleanup(func() { cordon(b, from, false) })
	b.must(b.Delete(b.ctx, pod), "deleting the pod")
	b.must(cluster.Await(b.within(), b.Cluster, pod, "bound to another node", func(p *corev1.Pod) bool {
		return p.UID != first && p.Spec.NodeName != "" && p.Spec.NodeName != from
	}), "replacing the pod")
	b.awaitRunning(pod)
	again := s.acknowledges(pod)
	b.eventually("a write is acknowledged again", func() bool { return again.Load() > 0 })
	s.isComplete(pod, acknowledged.Load())
	if on := attachedTo(b, v.Name); len(on) != 1 || on[0] != pod.Spec.NodeName {
		t.Errorf("the pod is on %s, and VolumeAttachments are for %q", pod.Spec.NodeName, on)
	}
	if !s.attached(from) {
		t.Errorf("node %s has no standby any more", from)
	}
}

// attachedTo returns the nodes that have a VolumeAttachment of a volume which is attached.
func attachedTo(b *bench, volume string) (nodes []string) {
	b.Helper()
	var all storagev1.VolumeAttachmentList
	b.must(b.List(b.ctx, &all), "listing the VolumeAttachments")
	for _, a := range all.Items {
		if name := a.Spec.Source.PersistentVolumeName; name != nil && *name == volume && a.Status.Attached {
			nodes = append(nodes, a.Spec.NodeName)
		}
	}
	return nodes
}

// cordon keeps new pods away from a node, or lets them come again.
func cordon(b *bench, node string, away bool) {
	b.Helper()
	b.must(cluster.Cordon(b.ctx, b, node, away), "patching the Node")
}
