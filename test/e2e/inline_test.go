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

// inlineName is the name of the inline volume in its pod.
const inlineName = "scratch"

// inline gives a pod an inline volume at MountPath.
func inline(attributes map[string]string) cluster.PodOption {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{
			Name: inlineName,
			VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
				Driver: v1alpha1.LocalDriverName, VolumeAttributes: attributes,
			}},
		})
		main := &p.Spec.Containers[0]
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: inlineName, MountPath: cluster.MountPath})
	}
}

func ofSize(size string) map[string]string {
	return map[string]string{"poolClass": class, "size": size}
}

// inlineVolume is a pod's inline volume on a node.
type inlineVolume struct {
	*bench
	pod  *corev1.Pod
	node string
}

// tag returns the tag of its logical volume, which names the pod.
func (i inlineVolume) tag() string { return "berth.dev/inline=" + string(i.pod.UID) + "/" + inlineName }

// tagged returns the logical volumes on the node with the inline volume's tag.
func (i inlineVolume) tagged() []string {
	i.Helper()
	var owned []string
	for line := range strings.Lines(i.onNode(i.node, "lvs", "--noheadings", "-o", "lv_name,lv_tags", group)) {
		if lv := strings.Fields(line); len(lv) == 2 && slices.Contains(strings.Split(lv[1], ","), i.tag()) {
			owned = append(owned, lv[0])
		}
	}
	return owned
}

// isIn says whether a node's report names the inline volume.
func (i inlineVolume) isIn(n *v1alpha1.StorageNode) bool {
	return slices.ContainsFunc(n.Status.Pools, func(p v1alpha1.Pool) bool {
		return slices.ContainsFunc(p.Inventory, func(item v1alpha1.InventoryItem) bool {
			return item.Inline != nil && item.Inline.PodUID == i.pod.UID && item.Inline.Name == inlineName
		})
	})
}

func (i inlineVolume) awaitListed() {
	i.Helper()
	n := &v1alpha1.StorageNode{}
	n.Name = i.node
	i.must(cluster.Await(i.within(), i.Cluster, n, "naming the pod's volume", i.isIn), "reporting")
}

func (i inlineVolume) awaitRemoved() {
	i.Helper()
	n := &v1alpha1.StorageNode{}
	n.Name = i.node
	i.must(cluster.Await(i.within(), i.Cluster, n, "not naming the pod's volume", func(n *v1alpha1.StorageNode) bool {
		return !i.isIn(n)
	}), "removing the pod's volume")
	if left := i.tagged(); len(left) != 0 {
		i.Errorf("the report does not name the pod's volume, and %v is on %s", left, i.node)
	}
}

func TestAnInlineVolumeLivesAndDiesWithItsPod(t *testing.T) {
	t.Parallel()
	inlineLivesAndDies(begin(t), "ext4", ofSize("64Mi"))
}

func inlineLivesAndDies(b *bench, fs string, attributes map[string]string) {
	b.Helper()
	pod := cluster.Pod(b.namespace, "pod", nil, inline(attributes))
	b.create(pod)
	b.awaitRunning(pod)
	volume := inlineVolume{b, pod, pod.Spec.NodeName}
	if got := b.sh(pod, "awk '$2==\"/data\" {print $3}' /proc/mounts"); got != fs {
		b.Errorf("mounted a %s, want %s", got, fs)
	}
	b.sh(pod, "echo here > /data/file && sync && cat /data/file")
	if lvs := volume.tagged(); len(lvs) != 1 {
		b.Errorf("logical volumes %v are the pod's; want one", lvs)
	}
	volume.awaitListed()
	b.remove(pod)
	volume.awaitRemoved()
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
			if lvs := (inlineVolume{b, pod, "node1"}).tagged(); len(lvs) != 0 {
				t.Errorf("%v was made all the same", lvs)
			}
			b.remove(pod)
		})
	}
}
