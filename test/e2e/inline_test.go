//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/test/cluster"
)

// class is the PoolClass that the lab's installation makes.
const class = "disks"

// inlineVolume is the name of the inline volume in its pod.
const inlineVolume = "scratch"

// inline gives a pod an inline volume at MountPath.
func inline(attributes map[string]string) cluster.PodOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
			Name: inlineVolume,
			VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
				Driver: v1alpha1.LocalDriverName, VolumeAttributes: attributes,
			}},
		})
		main := &p.Spec.Containers[0]
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: inlineVolume, MountPath: cluster.MountPath})
	}
}

func ofSize(size string) map[string]string {
	return map[string]string{"poolClass": class, "size": size}
}

// inlineOf returns the logical volumes on a node with the tag of a pod's inline volume.
func (b *bench) inlineOf(node string, pod *corev1.Pod) []string {
	b.Helper()
	var owned []string
	for line := range strings.Lines(b.onNode(node, "lvs", "--noheadings", "-o", "lv_name,lv_tags", group)) {
		if lv := strings.Fields(line); len(lv) == 2 && slices.Contains(strings.Split(lv[1], ","), tag(pod)) {
			owned = append(owned, lv[0])
		}
	}
	return owned
}

// tag returns the tag of the pod's inline volume, which names the pod.
func tag(pod *corev1.Pod) string { return "berth.dev/inline=" + string(pod.UID) + "/" + inlineVolume }

// lists says whether a node's report names the inline volume of a pod.
func lists(pod *corev1.Pod) func(*v1alpha1.StorageNode) bool {
	return func(n *v1alpha1.StorageNode) bool {
		return slices.ContainsFunc(n.Status.Pools, func(p v1alpha1.Pool) bool {
			return slices.ContainsFunc(p.Inventory, func(i v1alpha1.InventoryItem) bool {
				return i.Inline != nil && i.Inline.PodUID == pod.UID && i.Inline.Name == inlineVolume
			})
		})
	}
}

func (b *bench) awaitListed(node string, pod *corev1.Pod) {
	b.Helper()
	n := &v1alpha1.StorageNode{}
	n.Name = node
	b.must(cluster.Await(b.within(), b.Cluster, n, "naming the pod's volume", lists(pod)), "reporting")
}

func (b *bench) awaitRemoved(node string, pod *corev1.Pod) {
	b.Helper()
	n := &v1alpha1.StorageNode{}
	n.Name = node
	b.must(cluster.Await(b.within(), b.Cluster, n, "not naming the pod's volume", func(n *v1alpha1.StorageNode) bool {
		return !lists(pod)(n)
	}), "removing the pod's volume")
	if left := b.inlineOf(node, pod); len(left) != 0 {
		b.Errorf("the report does not name the pod's volume, and %v is on %s", left, node)
	}
}

func TestAnInlineVolumeLivesAndDiesWithItsPod(t *testing.T) {
	t.Parallel()
	begin(t).inlineLivesAndDies("ext4", ofSize("64Mi"))
}

func (b *bench) inlineLivesAndDies(fs string, attributes map[string]string) {
	b.Helper()
	pod := cluster.Pod(b.namespace, "pod", nil, inline(attributes))
	b.create(pod)
	b.awaitRunning(pod)
	node := pod.Spec.NodeName
	if got := b.sh(pod, "awk '$2==\"/data\" {print $3}' /proc/mounts"); got != fs {
		b.Errorf("mounted a %s, want %s", got, fs)
	}
	b.sh(pod, "echo here > /data/file && sync && cat /data/file")
	if lvs := b.inlineOf(node, pod); len(lvs) != 1 {
		b.Errorf("logical volumes %v are the pod's; want one", lvs)
	}
	b.awaitListed(node, pod)
	b.remove(pod)
	b.awaitRemoved(node, pod)
}

func TestAMistakeInAnInlineVolumeIsExplainedOnThePod(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		attributes map[string]string
		says       string
	}{
		"an unknown attribute":              {map[string]string{"poolClass": class, "size": "64Mi", "colour": "blue"}, "colour"},
		"a size above the room of the node": {ofSize("100Gi"), "no space"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := begin(t)
			pod := cluster.Pod(b.namespace, "pod", nil, inline(tc.attributes), cluster.OnNode("node1"))
			b.create(pod)
			b.awaitEvent(pod, tc.says)
			if lvs := b.inlineOf("node1", pod); len(lvs) != 0 {
				t.Errorf("%v was made all the same", lvs)
			}
			b.remove(pod)
		})
	}
}
