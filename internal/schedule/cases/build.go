package cases

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
)

const (
	mi = int64(1) << 20
	gi = int64(1) << 30
)

// uidPrefix and one more digit make a claim's UID; the digit is its name.
const uidPrefix = "00000000-0000-0000-0000-00000000000"

func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

// cluster has the class "fast" and three StorageClasses of it: "local" waits for
// its pod, "eager" does not, and "tuned" waits and has options of mkfs.
func cluster(nodes ...v1alpha1.StorageNode) schedule.Lists {
	l := schedule.Lists{Driver: driver.Local(), StorageNodes: nodes, PoolClasses: []v1alpha1.PoolClass{{ObjectMeta: metav1.ObjectMeta{Name: "fast"}}}}
	l.PoolClasses[0].Spec.InlineVolumes = &v1alpha1.InlineVolumes{Namespaces: []string{"shop"}}
	for name, mode := range map[string]storagev1.VolumeBindingMode{"local": storagev1.VolumeBindingWaitForFirstConsumer, "eager": storagev1.VolumeBindingImmediate} {
		l.StorageClasses = append(l.StorageClasses, storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: v1alpha1.LocalDriverName, VolumeBindingMode: &mode,
			Parameters: map[string]string{"poolClass": "fast"},
		})
	}
	l.StorageClasses = append(l.StorageClasses, storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "tuned"}, Provisioner: v1alpha1.LocalDriverName, VolumeBindingMode: new(storagev1.VolumeBindingWaitForFirstConsumer),
		Parameters: map[string]string{"poolClass": "fast", "csi.storage.k8s.io/fstype": "ext4", "mkfsOptions": "-m 1"},
	})
	return l
}

// node has pools vg0, vg1 and so on, of the given sizes.
func node(name string, sizes ...int64) v1alpha1.StorageNode {
	n := v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i, size := range sizes {
		n.Status.Pools = append(n.Status.Pools, v1alpha1.Pool{
			Name: "vg" + string(rune('0'+i)), Provisioner: v1alpha1.ProvisionerLVM, Health: v1alpha1.PoolHealthy,
			Classes: []string{"fast"}, Total: quantity(size), AllocationUnit: quantity(4 * mi),
		})
	}
	return n
}

// changed applies a change to a node.
func changed(n v1alpha1.StorageNode, change func(*v1alpha1.StorageNode)) v1alpha1.StorageNode {
	change(&n)
	return n
}

// claim is named by one digit.
func claim(name string, bytes int64) corev1.PersistentVolumeClaim {
	c := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uidPrefix + types.UID(name)}}
	c.Spec.StorageClassName = new("local")
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: quantity(bytes)}
	return c
}

func selected(c corev1.PersistentVolumeClaim, node string) corev1.PersistentVolumeClaim {
	c.Annotations = map[string]string{schedule.SelectedNode: node}
	return c
}

// volume is the Volume of a claim, carved in vg0 of a node.
func volume(claim, node string, bytes int64) v1alpha1.Volume {
	v := v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + uidPrefix + claim}}
	v.Spec.Capacity, v.Spec.PoolClass = quantity(bytes), "fast"
	v.Spec.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: claim, UID: uidPrefix + types.UID(claim)}
	v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: node, Pool: "vg0"}}
	v.Status.Replicas = []v1alpha1.ReplicaStatus{{
		Node: node, Pool: "vg0", State: v1alpha1.ReplicaReady, Ready: true, Capacity: new(quantity(bytes)), Requested: new(quantity(bytes)),
	}}
	return v
}

// pod uses claims, each under its own name.
func pod(claims ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "web"}}
	for _, name := range claims {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
		}})
	}
	return p
}

// inline adds an inline volume to a pod.
func inline(p *corev1.Pod, name, size string) *corev1.Pod {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{
		Driver: v1alpha1.LocalDriverName, VolumeAttributes: map[string]string{"poolClass": "fast", "size": size},
	}}})
	return p
}

// asking adds an attribute to the first inline volume of a pod.
func asking(key, value string, p *corev1.Pod) *corev1.Pod {
	p.Spec.Volumes[0].CSI.VolumeAttributes[key] = value
	return p
}

// running is another pod on a node, with an inline volume.
func running(name, node, size string) corev1.Pod {
	p := inline(pod(), "scratch", size)
	p.Name, p.UID, p.Spec.NodeName = name, types.UID(name), node
	return *p
}

// in puts a pod into another namespace.
func in(namespace string, p corev1.Pod) *corev1.Pod {
	p.Namespace = namespace
	return &p
}
