package cluster

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// SnapshotClass returns a class whose snapshots Berth takes, and deletes with their
// VolumeSnapshots.
func SnapshotClass(name string) *snapshotv1.VolumeSnapshotClass {
	return &snapshotv1.VolumeSnapshotClass{
		ObjectMeta:     metav1.ObjectMeta{Name: name},
		Driver:         v1alpha1.LocalDriverName,
		DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	}
}

// VolumeSnapshot returns a snapshot of a claim's volume.
func VolumeSnapshot(namespace, name, class, claim string) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: snapshotv1.VolumeSnapshotSpec{
			VolumeSnapshotClassName: &class,
			Source:                  snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim},
		},
	}
}

// FromSnapshot makes a claim's volume begin as a copy of a snapshot.
func FromSnapshot(name string) ClaimOption {
	group := snapshotv1.GroupName
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: name}
	}
}

// FromClaim makes a claim's volume begin as a copy of another claim's.
func FromClaim(name string) ClaimOption {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: name}
	}
}

// ReadyToUse says whether volumes can be made from a snapshot.
func ReadyToUse(s *snapshotv1.VolumeSnapshot) bool {
	return s.Status != nil && s.Status.ReadyToUse != nil && *s.Status.ReadyToUse
}
