package cut

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/schedule"
)

func cut[T any](t *testing.T, f func(any) (any, error), obj *T) *T {
	t.Helper()
	got, err := f(obj)
	if err != nil {
		t.Fatal(err)
	}
	return got.(*T)
}

func TestACachedClaimKeepsTheFieldsThatTheLedgerReads(t *testing.T) {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "data", UID: "u", Labels: map[string]string{"a": "b"},
		Annotations:     map[string]string{schedule.SelectedNode: "n", "long": "story"},
		OwnerReferences: []metav1.OwnerReference{{UID: "p"}},
	}}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	got := cut(t, claim, c)
	want := c.DeepCopy()
	want.Labels = nil
	delete(want.Annotations, "long")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAPodKeepsItsInlineVolumesOfBerths(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c"}}, Volumes: []corev1.Volume{
		{Name: "theirs", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: "other"}}},
		{Name: "ours", VolumeSource: corev1.VolumeSource{CSI: &corev1.CSIVolumeSource{Driver: v1alpha1.LocalDriverName}}},
	}}}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", Image: "i", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	got := cut(t, pod(driver.Local()), p)
	if len(got.Spec.Volumes) != 1 || got.Spec.Volumes[0].Name != "ours" || got.Spec.NodeName != "n" || len(got.Spec.Containers) != 0 {
		t.Errorf("spec %+v", got.Spec)
	}
	if s := got.Status.ContainerStatuses; len(s) != 1 || s[0].State.Running == nil || s[0].Image != "" {
		t.Errorf("status %+v", s)
	}
	p.Spec.Volumes = p.Spec.Volumes[:1]
	if got := cut(t, pod(driver.Local()), p); len(got.Spec.Volumes)+len(got.Status.ContainerStatuses) != 0 {
		t.Errorf("another driver's pod keeps %+v", got)
	}
}

func TestAPodKeepsItsClaimsUntilItHasItsNode(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{
		{Name: "none", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "claim", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
		{Name: "ephemeral", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
	}}}
	if got := cut(t, pod(driver.Local()), p).Spec.Volumes; len(got) != 2 || got[0].Name != "claim" || got[1].Name != "ephemeral" {
		t.Errorf("before: %+v", got)
	}
	p.Spec.NodeName = "n"
	if got := cut(t, pod(driver.Local()), p).Spec.Volumes; len(got) != 0 {
		t.Errorf("after: %+v", got)
	}
}

func TestAPodOfADriverWithEpochsKeepsItsClaimsAndWhatHasBegun(t *testing.T) {
	d := driver.Local()
	d.Kind = ownership.Attachments
	p := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "n", Volumes: []corev1.Volume{
		{Name: "none", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: "claim", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}},
	}}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "c", Image: "i", RestartCount: 2}}
	placed := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1, 0)}
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady}, placed}
	got := cut(t, pod(d), p)
	if len(got.Spec.Volumes) != 1 || got.Spec.Volumes[0].Name != "claim" {
		t.Errorf("volumes %+v", got.Spec.Volumes)
	}
	if s := got.Status.InitContainerStatuses; len(s) != 1 || s[0].RestartCount != 2 || s[0].Image != "" {
		t.Errorf("status %+v", s)
	}
	if diff := cmp.Diff([]corev1.PodCondition{placed}, got.Status.Conditions); diff != "" {
		t.Error(diff)
	}
}

func TestAPersistentVolumeOfOthersKeepsOnlyWhoseItIs(t *testing.T) {
	pv := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{StorageClassName: "x", PersistentVolumeSource: corev1.PersistentVolumeSource{
		CSI: &corev1.CSIPersistentVolumeSource{Driver: v1alpha1.LocalDriverName, VolumeHandle: "h", FSType: "ext4"},
	}}}
	pv.Spec.ClaimRef = &corev1.ObjectReference{UID: "u"}
	if got := cut(t, persistentVolume(driver.Local()), pv); got.Spec.StorageClassName != "x" || got.Spec.CSI.VolumeHandle != "h" {
		t.Errorf("ours: %+v", got.Spec)
	}
	pv.Spec.CSI.Driver = "other"
	if got := cut(t, persistentVolume(driver.Local()), pv); got.Spec.StorageClassName != "" || got.Spec.CSI.Driver != "other" {
		t.Errorf("theirs: %+v", got.Spec)
	}
}

func TestAnUnclaimedPersistentVolumeKeepsTheFieldsThatMatchClaims(t *testing.T) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
		Name: "v", Labels: map[string]string{"disk": "old"}, Annotations: map[string]string{corev1.BetaStorageClassAnnotation: "x", "long": "story"},
	}}
	pv.Spec = corev1.PersistentVolumeSpec{
		StorageClassName: "x", NodeAffinity: &corev1.VolumeNodeAffinity{}, ClaimRef: &corev1.ObjectReference{Name: "c"},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/disk"}},
	}
	pv.Status = corev1.PersistentVolumeStatus{Phase: corev1.VolumeAvailable, Message: "long"}
	want := pv.DeepCopy()
	delete(want.Annotations, "long")
	want.Status.Message = ""
	if diff := cmp.Diff(want, cut(t, persistentVolume(driver.Local()), pv)); diff != "" {
		t.Error(diff)
	}
}

func TestANodeKeepsItsLabelsForTheExtender(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b"}}, Spec: corev1.NodeSpec{Unschedulable: true}}
	if diff := cmp.Diff(n, cut(t, labelledNode, n)); diff != "" {
		t.Error(diff)
	}
}

func TestANodeKeepsWhetherPodsMayRunThereAndWhatItSaysOfVolumes(t *testing.T) {
	moves := v1alpha1.VolumeLabelPrefix + "pvc-1"
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"a": "b", moves: "true"},
		Annotations: map[string]string{"long": "story", v1alpha1.PoweredOffAnnotation: "{}"}}}
	n.Spec = corev1.NodeSpec{PodCIDR: "10.0.0.0/24", Unschedulable: true, Taints: []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}}}
	n.Status.NodeInfo = corev1.NodeSystemInfo{BootID: "boot", KernelVersion: "long"}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeDiskPressure}, {Type: corev1.NodeReady, Status: corev1.ConditionTrue, Message: "long"}}
	want := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{moves: "true"}, Annotations: map[string]string{v1alpha1.PoweredOffAnnotation: "{}"}},
		Spec: corev1.NodeSpec{Unschedulable: true, Taints: n.Spec.Taints}}
	want.Status.NodeInfo.BootID = "boot"
	want.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if diff := cmp.Diff(want, cut(t, plainNode, n)); diff != "" {
		t.Error(diff)
	}
}

// Where attachments may go follows from where the pods that use them may run.
func TestAPodThatUsesAVolumeWithEpochsKeepsWhereItMayRun(t *testing.T) {
	p := &corev1.Pod{Spec: corev1.PodSpec{
		NodeName: "n", NodeSelector: map[string]string{"a": "b"}, Tolerations: []corev1.Toleration{{Key: "t"}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAffinity: &corev1.PodAffinity{}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}},
	}}
	got := cut(t, pod(driver.Disk()), p).Spec
	if got.NodeSelector["a"] != "b" || len(got.Tolerations) != 1 || got.Affinity == nil || got.Affinity.NodeAffinity == nil || got.Affinity.PodAffinity != nil {
		t.Errorf("it keeps %+v", got)
	}
	if got := cut(t, pod(driver.Local()), p).Spec; got.NodeSelector != nil || got.Tolerations != nil || got.Affinity != nil {
		t.Errorf("a pod of the local driver keeps %+v", got)
	}
	p.Spec.Volumes = nil
	if got := cut(t, pod(driver.Disk()), p).Spec; got.NodeSelector != nil || got.Tolerations != nil || got.Affinity != nil {
		t.Errorf("a pod without claims keeps %+v", got)
	}
}

func TestAnAttachmentKeepsWhatIsAttachedWhere(t *testing.T) {
	pv := "pv-1"
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-1", Annotations: map[string]string{"long": "story"}}}
	a.Spec = storagev1.VolumeAttachmentSpec{Attacher: "disk.berth.dev", NodeName: "n1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &pv}}
	a.Status.AttachmentMetadata = map[string]string{"long": "story"}
	want := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "csi-1"}, Spec: a.Spec}
	if diff := cmp.Diff(want, cut(t, attachment, a)); diff != "" {
		t.Error(diff)
	}
}
