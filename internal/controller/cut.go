package controller

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
)

// The cache keeps only the fields of foreign objects that this process reads: a
// cluster has many pods and claims, and few are Berth's. A field that is cut looks
// empty, so code that reads another field must add it here.

// cutLabelledNode is cutNode for the extender and for volumes with epochs. They also need the labels,
// which decide which PersistentVolumes a Node can reach, and where pods may run.
func cutLabelledNode(obj any) (any, error) {
	cut, err := cutNode(obj)
	if node, ok := obj.(*corev1.Node); ok && err == nil {
		cut.(*corev1.Node).Labels = node.Labels
	}
	return cut, err
}

// cutNode keeps the name, the Ready condition, the cordon and taints that keep pods away, the word of a
// power system, and the labels of volumes.
func cutNode(obj any) (any, error) {
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
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			cut.Status.Conditions = []corev1.NodeCondition{{Type: condition.Type, Status: condition.Status}}
		}
	}
	return cut, nil
}

// cutPersistentVolume keeps of the driver's own volumes their place, size, class and claim. Of
// an available PersistentVolume, of which there are few, it keeps everything that is
// matched with claims.
func cutPersistentVolume(d driver.Driver) toolscache.TransformFunc {
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

// cutClaim keeps the spec, the class, the selected node and the pod that owns the claim.
func cutClaim(obj any) (any, error) {
	claim, ok := obj.(*corev1.PersistentVolumeClaim)
	if !ok {
		return obj, nil
	}
	cut := &corev1.PersistentVolumeClaim{ObjectMeta: identity(claim), Spec: claim.Spec}
	cut.OwnerReferences = claim.OwnerReferences
	for _, key := range []string{schedule.SelectedNode, corev1.BetaStorageClassAnnotation} {
		if value, ok := claim.Annotations[key]; ok {
			metav1.SetMetaDataAnnotation(&cut.ObjectMeta, key, value)
		}
	}
	return cut, nil
}

// cutPod keeps the driver's inline volumes and the state of the pod. Of a pod that has no
// node yet it also keeps the claims, for the extender; and of all pods if the driver's volumes have
// epochs, whose oversight must know which pods use them, and where those may run.
func cutPod(d driver.Driver) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		pod, ok := obj.(*corev1.Pod)
		if !ok {
			return obj, nil
		}
		cut := &corev1.Pod{ObjectMeta: identity(pod)}
		cut.Spec.NodeName, cut.Status.Phase = pod.Spec.NodeName, pod.Status.Phase
		stated := false
		for i := range pod.Spec.Volumes {
			v := &pod.Spec.Volumes[i]
			ours := d.Describes(v)
			claim := v.PersistentVolumeClaim != nil || v.Ephemeral != nil
			if ours || claim && (pod.Spec.NodeName == "" || d.Epochs()) {
				cut.Spec.Volumes = append(cut.Spec.Volumes, *v)
			}
			stated = stated || ours || claim && d.Epochs()
		}
		if d.Epochs() && len(cut.Spec.Volumes) > 0 {
			cut.Spec.Tolerations, cut.Spec.NodeSelector, cut.Spec.Affinity = pod.Spec.Tolerations, pod.Spec.NodeSelector, nodeAffinity(pod)
		}
		if stated {
			cut.Status.InitContainerStatuses = states(pod.Status.InitContainerStatuses)
			cut.Status.ContainerStatuses = states(pod.Status.ContainerStatuses)
		}
		return cut, nil
	}
}

func nodeAffinity(pod *corev1.Pod) *corev1.Affinity {
	if pod.Spec.Affinity == nil || pod.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return &corev1.Affinity{NodeAffinity: pod.Spec.Affinity.NodeAffinity}
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
