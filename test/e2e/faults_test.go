//go:build e2e

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/test/cluster"
)

func TestAMistakeInAStorageClassIsExplainedOnTheClaim(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		parameters map[string]string
		says       string
	}{
		"an unknown parameter":  {map[string]string{"poolClass": "disks", "colour": "blue"}, "colour"},
		"a missing pool class":  {map[string]string{"poolClass": "nowhere"}, "nowhere"},
		"no pool class":         {map[string]string{}, "poolClass"},
		"an unknown filesystem": {map[string]string{"poolClass": "disks", "csi.storage.k8s.io/fstype": "fat"}, "fat"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := begin(t)
			class := cluster.StorageClass(b.namespace, tt.parameters)
			class.VolumeBindingMode = nil // At once: no capacity is published for a broken class.
			b.create(class)
			t.Cleanup(func() { b.remove(class) })
			claim := b.claim("data", class.Name, "1Gi")
			b.awaitEvent(claim, tt.says)
			if v := b.volumes(b.ctx); len(v) != 0 {
				t.Errorf("a volume was made all the same: %s", v[0].Name)
			}
		})
	}
}

func TestMountedVolumesOutliveTheAgent(t *testing.T) {
	b := begin(t)
	claim := b.claim("data", classExt4, "1Gi")
	pod := b.run("pod", claim)
	agent := agentOn(b, pod.Spec.NodeName)
	b.must(b.Delete(b.ctx, agent), "deleting the agent's pod")
	b.sh(pod, "echo alive > /data/file && sync")
	b.must(cluster.AwaitGone(b.within(), b.Cluster, agent), "deleting the agent's pod")
	b.sh(pod, "cat /data/file")

	b.remove(pod)
	second := b.run("second", claim)
	if got := b.sh(second, "cat /data/file"); got != "alive" {
		t.Errorf("read %q after the agent came back", got)
	}
}

func agentOn(b *bench, node string) *corev1.Pod {
	b.Helper()
	var pods corev1.PodList
	b.must(b.List(b.ctx, &pods, client.InNamespace("berth-system"),
		client.MatchingLabels{"app.kubernetes.io/component": "agent"},
		client.MatchingFields{"spec.nodeName": node}), "listing agents")
	if len(pods.Items) != 1 {
		b.Fatalf("%d agents on %s", len(pods.Items), node)
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: pods.Items[0].Namespace, Name: pods.Items[0].Name}}
}
