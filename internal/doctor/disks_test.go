package doctor

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/schedule"
)

// shared is a cluster in which all agrees: the claim shop/db has the shared disk vol, by its PersistentVolume pv.
func shared() *schedule.Lists {
	l := &schedule.Lists{Driver: driver.Local()}
	l.StorageClasses = []storagev1.StorageClass{{ObjectMeta: metav1.ObjectMeta{Name: "san"}, Provisioner: v1alpha1.DiskDriverName}}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: uid}}
	claim.Spec.VolumeName, claim.Spec.StorageClassName, claim.Status.Phase = "pv", new("san"), corev1.ClaimBound
	pv := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}}
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "db", UID: uid}
	pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	pv.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.DiskDriverName, VolumeHandle: "vol"}
	v := v1alpha1.Volume{ObjectMeta: metav1.ObjectMeta{Name: "vol"}}
	v.Spec = v1alpha1.VolumeSpec{Driver: v1alpha1.DiskDriverName, Capacity: resource.MustParse("1Gi"), VolumeMode: v1alpha1.Filesystem,
		Replication: v1alpha1.Replication{Kind: v1alpha1.ReplicationAttachments}}
	l.Claims, l.PersistentVolumes, l.Volumes = []corev1.PersistentVolumeClaim{claim}, []corev1.PersistentVolume{pv}, []v1alpha1.Volume{v}
	return l
}

func TestSharedDisksAreExaminedAsFarAsTheRulesHoldForThem(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(l *schedule.Lists)
		want  []string
	}{
		"all agrees": {func(*schedule.Lists) {}, nil},
		"the Volume is lost": {func(l *schedule.Lists) { l.Volumes = nil },
			[]string{"VolumeLost PersistentVolume pv of claim shop/db"}},
		"two PersistentVolumes stand for one disk": {func(l *schedule.Lists) {
			second := l.PersistentVolumes[0].DeepCopy()
			second.Name = "second"
			l.PersistentVolumes = append(l.PersistentVolumes, *second)
		}, []string{"SharedHandle PersistentVolume pv of claim shop/db"}},
		"the PersistentVolume is lost": {func(l *schedule.Lists) { l.PersistentVolumes = nil },
			[]string{"ClaimLost PersistentVolumeClaim shop/db", "Unreferenced Volume vol"}},
		"the Volume is deleted":  {func(l *schedule.Lists) { l.Volumes[0].DeletionTimestamp = &metav1.Time{} }, []string{"VolumeGoing PersistentVolume pv of claim shop/db"}},
		"the claim is gone":      {func(l *schedule.Lists) { l.Claims = nil }, []string{"ClaimGone PersistentVolume pv of claim shop/db"}},
		"the Volume is a pool's": {func(l *schedule.Lists) { l.Volumes[0].Spec.Driver = "" }, []string{"DriverMismatch PersistentVolume pv of claim shop/db", "Unplaced Volume vol", "Unreferenced Volume vol"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := shared()
			test.spoil(l)
			var got []string
			for _, f := range Examine(Cluster{Lists: l, Heartbeats: silent{}, System: "berth-system"}) {
				got = append(got, string(f.ID)+" "+f.Subject())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
