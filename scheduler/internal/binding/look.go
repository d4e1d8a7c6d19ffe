package binding

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/component-helpers/storage/volume"
)

// look returns the name of a claim, of those written, that is yet to be bound, or
// nothing when all are. An error means that they will not be, and that the pod has
// to be scheduled again.
func (b *Binder) look(pod *corev1.Pod, written []*corev1.PersistentVolumeClaim) (waiting string, err error) {
	if _, err := b.pods.Pods(pod.Namespace).Get(pod.Name); apierrors.IsNotFound(err) {
		return "", fmt.Errorf("the pod was deleted meanwhile: %w", err)
	}
	node, err := b.nodes.Get(pod.Spec.NodeName)
	if err != nil {
		return "", fmt.Errorf("looking for the pod's node: %w", err)
	}
	for _, claim := range written {
		now, err := b.claims.PersistentVolumeClaims(claim.Namespace).Get(claim.Name)
		if err != nil {
			return "", fmt.Errorf("looking for claim %s: %w", claim.Name, err)
		}
		bound, err := b.bound(claim, now, node)
		if err != nil {
			return "", err
		}
		if !bound {
			return claim.Name, nil
		}
	}
	return "", nil
}

// bound compares a claim as it was written with the claim as it is now.
func (b *Binder) bound(written, now *corev1.PersistentVolumeClaim, node *corev1.Node) (bool, error) {
	if now.UID != written.UID {
		return false, fmt.Errorf("claim %s was replaced by another one of its name", written.Name)
	}
	if older(now, written) {
		return false, nil
	}
	// The provisioner takes the node away when it cannot provision there.
	if selected := now.Annotations[volume.AnnSelectedNode]; selected != node.Name {
		return false, fmt.Errorf("provisioning claim %s on node %s failed: its events say why", now.Name, node.Name)
	}
	if now.Spec.VolumeName == "" {
		return false, nil
	}
	pv, err := b.volumes.Get(now.Spec.VolumeName)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil // the informer of PersistentVolumes is behind, or the claim will be Lost
	case err != nil:
		return false, fmt.Errorf("looking for PersistentVolume %s: %w", now.Spec.VolumeName, err)
	}
	if err := volume.CheckNodeAffinity(pv, node.Labels); err != nil {
		return false, fmt.Errorf("PersistentVolume %s does not belong on node %s: %w", pv.Name, node.Name, err)
	}
	// The phase is written last, and the kubelet looks at nothing else: it would
	// set a pod that came earlier aside for seconds.
	return metav1.HasAnnotation(now.ObjectMeta, volume.AnnBindCompleted) && now.Status.Phase == corev1.ClaimBound, nil
}

// older is whether a is from before b. Versions that cannot be compared count as
// not older: the rest of the look then decides.
func older(a, b *corev1.PersistentVolumeClaim) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && order < 0
}
