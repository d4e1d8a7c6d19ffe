//go:build e2e && thorough

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/test/cluster"
)

func TestPublishedCapacityFollowsTheVolumeGroup(t *testing.T) {
	b := begin(t)
	claim := b.claim("data", classExt4, "1Gi")
	pod := cluster.Pod(b.namespace, "pod", []*corev1.PersistentVolumeClaim{claim}, cluster.OnNode("node1"))
	before := capacity(b, "node1", classExt4)
	b.create(pod)
	b.awaitRunning(pod)
	want := before.Capacity.Value() - 1<<30
	b.must(cluster.Await(b.within(), b.Cluster, before, "1Gi less", func(c *storagev1.CSIStorageCapacity) bool {
		return c.Capacity.Value() == want
	}), "publishing")

	b.remove(pod)
	b.remove(claim)
	b.must(cluster.Await(b.within(), b.Cluster, before, "1Gi more", func(c *storagev1.CSIStorageCapacity) bool {
		return c.Capacity.Value() == want+1<<30
	}), "publishing")
}

func TestCapacityThatOthersTakeIsSeen(t *testing.T) {
	b := begin(t)
	published := capacity(b, "node1", classExt4)
	want := published.Capacity.Value() - 1<<30
	b.onNode("node1", "lvcreate", "-y", "-n", "foreign", "-L", "1g", group)
	t.Cleanup(func() { b.onNode("node1", "lvremove", "-y", group+"/foreign") })
	b.must(cluster.Await(b.within(), b.Cluster, published, "1Gi less", func(c *storagev1.CSIStorageCapacity) bool {
		return c.Capacity.Value() == want
	}), "publishing")
}

func capacity(b *bench, node, class string) *storagev1.CSIStorageCapacity {
	b.Helper()
	var all storagev1.CSIStorageCapacityList
	b.must(b.List(b.ctx, &all), "listing capacities")
	for _, c := range all.Items {
		if cluster.CapacityOf(node, class, &c) {
			return &c
		}
	}
	b.Fatalf("node %s publishes no capacity for %s", node, class)
	return nil
}

func TestTheSchedulerObeysPublishedCapacity(t *testing.T) {
	b := begin(t)
	claim := b.claim("huge", classExt4, "100Gi")
	pod := cluster.Pod(b.namespace, "pod", []*corev1.PersistentVolumeClaim{claim})
	b.create(pod)
	b.must(cluster.Await(b.within(), b.Cluster, pod, "refused for lack of storage", func(p *corev1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && strings.Contains(c.Message, "did not have enough free storage") {
				return true
			}
		}
		return false
	}), "scheduling")
	if v := b.volumes(b.ctx); len(v) != 0 {
		t.Errorf("a volume was made all the same: %v", v[0].Name)
	}
}

// Each node has room for one of these. The test posts all three claims before a node
// can publish its new capacity, so the scheduler may send two to one node. The node
// refuses one, and its pod goes elsewhere.
func TestPodsThatAFullNodeRefusesLandElsewhere(t *testing.T) {
	b := begin(t)
	var pods []*corev1.Pod
	for i := range 3 {
		claim := b.claim(fmt.Sprintf("data%d", i), classExt4, "6Gi")
		pods = append(pods, cluster.Pod(b.namespace, fmt.Sprintf("pod%d", i), []*corev1.PersistentVolumeClaim{claim}))
	}
	for _, p := range pods {
		b.create(p)
	}
	seen := map[string]string{}
	for _, p := range pods {
		b.awaitRunning(p)
		if other, twice := seen[p.Spec.NodeName]; twice {
			t.Errorf("%s and %s are both on %s, which has room for one", p.Name, other, p.Spec.NodeName)
		}
		seen[p.Spec.NodeName] = p.Name
	}
}

func TestAnExpansionThatDoesNotFitSaysSoAndLeavesTheVolumeUsable(t *testing.T) {
	b := begin(t)
	claim := b.claim("data", classExt4, "1Gi")
	pod := b.run("pod", claim)
	b.resize(claim, "100Gi")
	b.awaitEvent(claim, "more asked")
	b.sh(pod, "echo still > /data/works")

	b.must(b.Get(b.ctx, client.ObjectKeyFromObject(claim), claim), "reading claim")
	b.resize(claim, "2Gi")
	b.must(cluster.Await(b.within(), b.Cluster, claim, "2Gi", cluster.HasCapacity("2Gi")), "growing")
	if got := claim.Status.Capacity[corev1.ResourceStorage]; got.Cmp(resource.MustParse("3Gi")) > 0 {
		t.Errorf("the claim has %s", got.String())
	}
}
