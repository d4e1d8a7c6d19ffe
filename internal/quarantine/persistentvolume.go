package quarantine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// provisionedBy is the annotation that names the driver. If an administrator changes the
// reclaim policy, that driver deletes the volume of the PersistentVolume.
const provisionedBy = "pv.kubernetes.io/provisioned-by"

// persistentVolume returns a PersistentVolume for an adopted Volume, as the provisioner
// makes one, except that it retains the data: a user who deletes a claim does not mean to
// delete data that was just found.
func (a Adoption) persistentVolume(ctx context.Context, c client.Reader, v *v1alpha1.Volume) (*corev1.PersistentVolume, error) {
	class, err := a.storageClass(ctx, c)
	if err != nil {
		return nil, err
	}
	mode := corev1.PersistentVolumeMode(v.Spec.VolumeMode)
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: v.Name, Annotations: map[string]string{provisionedBy: served.Name}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: v.Spec.Capacity},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			StorageClassName:              class,
			VolumeMode:                    &mode,
			ClaimRef:                      a.Claim,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: served.Name, VolumeHandle: v.Name, FSType: string(v.Spec.FSType),
			}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: v1alpha1.TopologyKey, Operator: corev1.NodeSelectorOpIn, Values: []string{a.Node}}},
			}}}},
		},
	}, nil
}

// storageClass returns the class with which the PersistentVolume can be bound to the claim.
func (a Adoption) storageClass(ctx context.Context, c client.Reader) (string, error) {
	if a.StorageClass != "" || a.Claim == nil {
		return a.StorageClass, nil
	}
	claim, err := claimNamed(ctx, c, a.Claim)
	if err != nil || claim == nil || claim.Spec.StorageClassName == nil {
		return "", err
	}
	return *claim.Spec.StorageClassName, nil
}
