//go:build e2e && thorough

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/test/cluster"
)

func TestAPowerFailureLosesNothingAndLeavesNothingBehind(t *testing.T) {
	const node = "node3"
	b := begin(t)
	here := cluster.OnNode(node)
	claimed := cluster.Pod(b.namespace, "claimed", []*corev1.PersistentVolumeClaim{b.claim("data", classExt4, "1Gi")}, here, cluster.Steadfast)
	inlined := cluster.Pod(b.namespace, "inlined", nil, inline(ofSize("64Mi")), here, cluster.Steadfast)
	forgotten := cluster.Pod(b.namespace, "forgotten", nil, inline(ofSize("64Mi")), here, cluster.Steadfast)
	b.create(claimed, inlined, forgotten)
	for _, pod := range []*corev1.Pod{claimed, inlined, forgotten} {
		b.awaitRunning(pod)
		b.sh(pod, "echo kept > /data/file && sync")
	}
	scratch := inlineVolume{b, forgotten, node}
	scratch.awaitListed()

	b.lab("power", "off", node)
	b.must(b.Delete(b.ctx, forgotten, client.GracePeriodSeconds(0)), "deleting a pod by force")
	b.lab("power", "on", node)
	for _, pod := range []*corev1.Pod{claimed, inlined} {
		awaitRestarted(b, pod)
		if got := b.sh(pod, "cat /data/file"); got != "kept" {
			t.Errorf("pod %s read %q after the power failure", pod.Name, got)
		}
	}
	scratch.awaitRemoved()
}

// awaitRestarted waits until a pod runs a restarted container.
func awaitRestarted(b *bench, pod *corev1.Pod) {
	b.Helper()
	before := pod.Status.ContainerStatuses[0].ContainerID
	b.must(cluster.Await(b.within(), b.Cluster, pod, "restarted", func(p *corev1.Pod) bool {
		return cluster.Running(p) && p.Status.ContainerStatuses[0].ContainerID != before
	}), "restarting")
}
