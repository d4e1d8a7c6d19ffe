package survey_test

import (
	"encoding/json"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/schedule"
	"berth.dev/berth/internal/survey"
)

// claimed adds a claim, and a pod of its name that uses it.
func claimed(c *survey.Cluster, name string, uid types.UID) {
	c.Claims = append(c.Claims, corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid}})
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	c.Pods = append(c.Pods, pod)
}

func TestAVolumeBelongsToTheClaimThatItsPersistentVolumeIsBoundTo(t *testing.T) {
	for name, test := range map[string]struct {
		// made is the claim in the Volume, bound that in its PersistentVolume.
		made, bound types.UID
		change      func(*survey.Cluster)
		want        string
	}{
		"it was made for this claim": {bound: "demo", want: "demo"},
		"it was retained and bound to another claim, and the first was made anew": {made: "gone", bound: "demo", want: "demo"},
		"it was retained, and its claim was made anew":                            {made: "old", bound: "gone", want: ""},
		"its PersistentVolume is free": {made: "old", bound: "demo", change: func(c *survey.Cluster) {
			c.PersistentVolumes[0].Spec.ClaimRef = nil
		}},
		"it has no PersistentVolume yet": {made: "old", bound: "demo", change: func(c *survey.Cluster) { c.PersistentVolumes = nil }, want: "old"},
		"its claim was made anew before it had a PersistentVolume": {made: "gone", bound: "demo", change: func(c *survey.Cluster) {
			c.PersistentVolumes = nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _, _ := well()
			c = shared(c, func(v *v1alpha1.Volume) {
				if test.made != "" {
					v.Spec.ClaimRef = &v1alpha1.ClaimReference{Namespace: "shop", Name: "old", UID: test.made}
				}
			})
			claimed(&c, "old", "old")
			claimed(&c, "demo", "demo")
			c.PersistentVolumes[0].Spec.ClaimRef.UID = test.bound
			if test.change != nil {
				test.change(&c)
			}
			got := ""
			for _, p := range c.Users()[disk] {
				got += p.Name
			}
			row := slices.IndexFunc(c.VolumeRows(), func(v survey.Volume) bool { return v.Name == disk })
			if got != test.want || c.VolumeRows()[row].Claim != test.want {
				t.Errorf("pods %q use it, and its claim is %q, want %q", got, c.VolumeRows()[row].Claim, test.want)
			}
		})
	}
}

func TestAClaimThatIsMadeForOnePodIsUsedByIt(t *testing.T) {
	c, p, _ := well()
	c.Pods[0].Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	c.Volumes[0].Spec.ClaimRef.Name = "db-data"
	if rows := c.VolumeRows(); !slices.Equal(rows[0].Pods, []string{"db"}) {
		t.Errorf("%+v", rows)
	}
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-data"}}
	claim.Spec.StorageClassName = new("local")
	c.Claims = append(c.Claims, claim)
	if s := c.Status(p); s.Waiting != 1 {
		t.Errorf("%d claims wait: %q", s.Waiting, s.Problems)
	}
}

func TestTheDocumentsOfAnEmptyClusterHaveListsAndNotNull(t *testing.T) {
	empty := survey.Cluster{Lists: &schedule.Lists{}, Heartbeats: silent{}}
	for _, rows := range []any{empty.NodeRows(), empty.PoolRows(), empty.VolumeRows()} {
		if document, err := json.Marshal(rows); err != nil || string(document) != "[]" {
			t.Errorf("%v: %s", err, document)
		}
	}
	empty.Volumes = []v1alpha1.Volume{{}}
	if rows := empty.VolumeRows(); rows[0].Nodes == nil {
		t.Errorf("%+v", rows)
	}
}
