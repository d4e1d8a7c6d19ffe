package controller_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/usecase/volumes"
)

// requestFor returns the request that the provisioner makes for a claim.
func (c *cluster) requestFor(claim *corev1.PersistentVolumeClaim, allowed ...*controllertest.Node) volumes.Request {
	r := c.request(allowed...)
	r.Name = "pvc-" + string(claim.UID)
	r.Claim = &v1alpha1.ClaimReference{Namespace: claim.Namespace, Name: claim.Name}
	return r
}

func persistentVolume(name, handle string) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: handle}},
		},
	}
}

// orphaned checks the condition of that name.
func orphaned(status metav1.ConditionStatus) func(*v1alpha1.Volume) error {
	return func(v *v1alpha1.Volume) error {
		if v == nil {
			return errors.New("it does not exist")
		}
		if !meta.IsStatusConditionPresentAndEqual(v.Status.Conditions, v1alpha1.ConditionOrphaned, status) {
			return fmt.Errorf("conditions are %+v, want Orphaned %s", v.Status.Conditions, status)
		}
		return nil
	}
}
