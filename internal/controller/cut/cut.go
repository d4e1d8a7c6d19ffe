package cut

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
)

// Foreign returns how the cached objects of each foreign kind are cut that controllers of a driver watch. Places says
// that the process chooses places for volumes, and so must know where pods may run.
func Foreign(d driver.Driver, places bool) map[client.Object]toolscache.TransformFunc {
	node := plainNode
	if places {
		node = labelledNode
	}
	return map[client.Object]toolscache.TransformFunc{
		&corev1.Node{}:                  node,
		&corev1.PersistentVolume{}:      persistentVolume(d),
		&corev1.PersistentVolumeClaim{}: claim,
		&corev1.Pod{}:                   pod(d),
		&storagev1.VolumeAttachment{}:   attachment,
	}
}

// labelledNode is plainNode with all labels: they decide which PersistentVolumes a Node can reach, and where pods may
// run.
func labelledNode(obj any) (any, error) {
	cut, err := plainNode(obj)
	if node, ok := obj.(*corev1.Node); ok && err == nil {
		cut.(*corev1.Node).Labels = node.Labels
	}
	return cut, err
}

// plainNode keeps the name, the boot, the Ready condition, the cordon and taints that keep pods away, the word of a
// power system, and the labels of volumes.
func plainNode(obj any) (any, error) {
	node, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	cut := &corev1.Node{ObjectMeta: identity(node)}
	cut.Spec.Unschedulable, cut.Spec.Taints = node.Spec.Unschedulable, node.Spec.Taints
	if off, ok := node.Annotations[v1alpha1.PoweredOffAnnotation]; ok {
		metav1.SetMetaDataAnnotation(&cut.ObjectMeta, v1alpha1.PoweredOffAnnotation, off)
	}
	for key, value := range node.Labels {
		if strings.HasPrefix(key, v1alpha1.VolumeLabelPrefix) {
			metav1.SetMetaDataLabel(&cut.ObjectMeta, key, value)
		}
	}
	cut.Status.NodeInfo.BootID = node.Status.NodeInfo.BootID
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			cut.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return cut, nil
}

// persistentVolume keeps of the driver's own volumes their place, size, class and claim. Of
// an available PersistentVolume, of which there are few, it keeps everything that is
// matched with claims.
func persistentVolume(d driver.Driver) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		pv, ok := obj.(*corev1.PersistentVolume)
		if !ok {
			return obj, nil
		}
		cut := &corev1.PersistentVolume{ObjectMeta: identity(pv)}
		if _, available := schedule.AvailableIn(pv); available {
			cut.Labels, cut.Spec, cut.Status.Phase = pv.Labels, pv.Spec, pv.Status.Phase
			if class, ok := pv.Annotations[corev1.BetaStorageClassAnnotation]; ok {
				metav1.SetMetaDataAnnotation(&cut.ObjectMeta, corev1.BetaStorageClassAnnotation, class)
			}
			return cut, nil
		}
		csi := pv.Spec.CSI
		if csi == nil {
			return cut, nil
		}
		cut.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: csi.Driver, VolumeHandle: csi.VolumeHandle}
		if d.Handle(pv) != "" {
			cut.Spec.Capacity, cut.Spec.ClaimRef = pv.Spec.Capacity, pv.Spec.ClaimRef
			cut.Spec.NodeAffinity, cut.Spec.StorageClassName = pv.Spec.NodeAffinity, pv.Spec.StorageClassName
		}
		return cut, nil
	}
}

// claim keeps the spec, the class, the selected node and the pod that owns the claim.
func claim(obj any) (any, error) {
	c, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return obj, nil
	}
	cut := &corev1.PersistentVolumeClaim{ObjectMeta: identity(c), Spec: c.Spec}
	cut.OwnerReferences = c.OwnerReferences
	for _, key := range []string{schedule.SelectedNode, corev1.BetaStorageClassAnnotation} {
		if value, ok := c.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&cut.ObjectMeta, key, value)
		}
	}
	return cut, nil
}

// pod keeps the driver's inline volumes and the state of the pod. Of a pod that has no
// node yet it also keeps the claims, for the extender; and of all pods if the driver's volumes have
// epochs, whose oversight must know which pods use them, and where those may run.
func pod(d driver.Driver) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		p, ok := obj.(*corev1.Pod)
		if !ok {
			return obj, nil
		}
		cut := &corev1.Pod{ObjectMeta: identity(p)}
		cut.Spec.NodeName, cut.Status.Phase = p.Spec.NodeName, p.Status.Phase
		stated := false
		for i := range p.Spec.Volumes {
			v := &p.Spec.Volumes[i]
			ours := d.Describes(v)
			claims := v.PersistentVolumeClaim != nil || v.Ephemeral != nil
			if ours || claims && (p.Spec.NodeName == "" || d.Epochs()) {
				cut.Spec.Volumes = append(cut.Spec.Volumes, *v)
			}
			stated = stated || ours || claims && d.Epochs()
		}
		if d.Epochs() && len(cut.Spec.Volumes) > 0 {
			cut.Status.Conditions = scheduled(p.Status.Conditions)
			cut.Spec.Tolerations, cut.Spec.NodeSelector, cut.Spec.Affinity = p.Spec.Tolerations, p.Spec.NodeSelector, nodeAffinity(p)
		}
		if stated {
			cut.Status.InitContainerStatuses = states(p.Status.InitContainerStatuses)
			cut.Status.ContainerStatuses = states(p.Status.ContainerStatuses)
		}
		return cut, nil
	}
}

// attachment keeps which volume is attached to which node.
func attachment(obj any) (any, error) {
	a, ok := obj.(*storagev1.VolumeAttachment)
	if !ok {
		return obj, nil
	}
	return &storagev1.VolumeAttachment{ObjectMeta: identity(a), Spec: a.Spec}, nil
}

func nodeAffinity(pod *corev1.Pod) *corev1.Affinity {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: pod.Spec.Affinity.NodeAffinity}
}

// scheduled keeps since when the pod has its node.
func scheduled(of []corev1.PodCondition) (cut []corev1.PodCondition) {
	for i := range of {
		if c := &of[i]; c.Type == corev1.PodScheduled {
			cut = append(cut, corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return cut
}

func states(of []corev1.ContainerStatus) []corev1.ContainerStatus {
	cut := make([]corev1.ContainerStatus, 0, len(of))
	for i := range of {
		cut = append(cut, corev1.ContainerStatus{State: of[i].State, RestartCount: of[i].RestartCount})
	}
	return cut
}

func identity(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
		ResourceVersion: o.GetResourceVersion(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}
}
