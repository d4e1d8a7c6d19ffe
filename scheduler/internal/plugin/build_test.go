package plugin

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
)

const gi = int64(1) << 30

// nodeSpec is a node with pools vg0, vg1, ... of these sizes.
type nodeSpec struct {
	name   string
	pools  []int64
	silent bool
}

func node(name string, pools ...int64) nodeSpec { return nodeSpec{name: name, pools: pools} }

func (c *cluster) storageClass(name string, mode storagev1.VolumeBindingMode) {
	c.objects.classes[name] = &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: v1alpha1.LocalDriverName,
		Parameters: map[string]string{"poolClass": "fast"}, VolumeBindingMode: &mode,
	}
}

// claim makes an unbound claim; its UID is "uid-" and its name.
func (c *cluster) claim(name string, size int64) *corev1.PersistentVolumeClaim {
	class := "fast"
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(size, resource.BinarySI)}},
		},
	}
	c.objects.claims[name] = claim
	return claim
}

// bound gives a claim its PersistentVolume, with the data on a node.
func (c *cluster) bound(name, node string) {
	claim := c.claim(name, gi)
	claim.Spec.VolumeName = "pvc-" + string(claim.UID)
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: claim.Spec.VolumeName}
	c.objects.pvs[pv.Name] = pv
	v := &v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: pv.Name}}
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: node, Pool: "vg0"}}
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: node, State: v1alpha1.ReplicaReady, Ready: true}}
	c.objects.volumes[pv.Name] = v
}

// podWith makes a pod that names claims.
func podWith(name string, claims ...string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name)}}
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	return pod
}

// podWithInline makes a pod with one inline volume.
func podWithInline(name string, size int64) *corev1.Pod {
	pod := podWith(name)
	pod.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: v1alpha1.LocalDriverName, VolumeAttributes: map[string]string{"poolClass": "fast", "size": fmt.Sprint(size)},
	}}}}
	return pod
}

// run puts a pod with an inline volume on a node.
func (c *cluster) run(pod *corev1.Pod, node string, size int64, priority int32) {
	pod.Spec.NodeName, pod.Spec.Priority = node, &priority
	c.running[node] = append(c.running[node], pod)
	c.ledger.ObservePod(ledger.PodObject{
		UID: uid(pod), Node: node, Started: true, Inline: []ledger.InlineVolume{{Name: "scratch", Class: "fast", Bytes: size}},
	})
}

// begin runs PreFilter and fails unless it goes on.
func (c *cluster) begin(t testing.TB, pod *corev1.Pod) fwk.CycleState {
	t.Helper()
	state := framework.NewCycleState()
	if _, status, _ := c.RunPreFilterPlugins(t.Context(), state, pod); !status.IsSuccess() {
		t.Fatalf("PreFilter of pod %s: %v", pod.Name, status)
	}
	return state
}

// reserve runs PreFilter and Reserve.
func (c *cluster) reserve(t testing.TB, pod *corev1.Pod, node string) (fwk.CycleState, *fwk.Status) {
	t.Helper()
	state := c.begin(t, pod)
	return state, c.RunReservePluginsReserve(t.Context(), state, pod, node)
}

// used is the sum of the charges on a node's pools.
func (c *cluster) used(node string) int64 {
	var used int64
	for _, pool := range c.ledger.Pools(node) {
		used += pool.Used
	}
	return used
}
