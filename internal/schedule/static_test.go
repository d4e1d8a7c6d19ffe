package schedule

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

type staticOption func(*corev1.PersistentVolume)

// static is a PersistentVolume of class "local" with 4Gi that every node reaches and no claim has.
func static(name string, options ...staticOption) corev1.PersistentVolume {
	pv := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
	pv.Spec.StorageClassName = "local"
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("4Gi")}
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Status.Phase = corev1.VolumeAvailable
	for _, o := range options {
		o(&pv)
	}
	return pv
}

func phase(p corev1.PersistentVolumePhase) staticOption {
	return func(pv *corev1.PersistentVolume) { pv.Status.Phase = p }
}

func reachedFrom(zone string) staticOption {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{zone}}},
		}}}}
	}
}

func keptFor(claim string, uid string) staticOption {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: claim}
		pv.Spec.ClaimRef.UID = uidOf(uid)
		if uid == "" {
			pv.Spec.ClaimRef.UID = ""
		}
	}
}

func holding(size string) staticOption {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
}

// waiting is a claim of class "local".
func waiting(name, size string, change ...func(*corev1.PersistentVolumeClaim)) Wanted {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uidOf(name)}}
	c.Spec.StorageClassName = new("local")
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	for _, f := range change {
		f(c)
	}
	return Wanted{Claim: c}
}

var staticCases = map[string]struct {
	volumes []corev1.PersistentVolume
	wanted  []Wanted
	// room names the volumes that need room on node n, in zone a; "inline" is an inline volume.
	room []string
}{
	"a volume that fits":                       {[]corev1.PersistentVolume{static("v")}, []Wanted{waiting("1", "3Gi")}, nil},
	"a volume that the node reaches":           {[]corev1.PersistentVolume{static("v", reachedFrom("a"))}, []Wanted{waiting("1", "3Gi")}, nil},
	"a volume that the node does not reach":    {[]corev1.PersistentVolume{static("v", reachedFrom("b"))}, []Wanted{waiting("1", "3Gi")}, []string{"1"}},
	"a volume that is too small":               {[]corev1.PersistentVolume{static("v")}, []Wanted{waiting("1", "5Gi")}, []string{"1"}},
	"a volume that a claim has":                {[]corev1.PersistentVolume{static("v", keptFor("2", "2"))}, []Wanted{waiting("1", "3Gi")}, []string{"1"}},
	"a volume that is kept for another claim":  {[]corev1.PersistentVolume{static("v", keptFor("2", ""))}, []Wanted{waiting("1", "3Gi")}, []string{"1"}},
	"a volume that is kept for the claim":      {[]corev1.PersistentVolume{static("v", keptFor("1", ""))}, []Wanted{waiting("1", "3Gi")}, nil},
	"a volume of another class":                {[]corev1.PersistentVolume{static("v", func(pv *corev1.PersistentVolume) { pv.Spec.StorageClassName = "x" })}, []Wanted{waiting("1", "3Gi")}, []string{"1"}},
	"a volume that the last claim has left":    {[]corev1.PersistentVolume{static("v", phase(corev1.VolumeReleased))}, []Wanted{waiting("1", "3Gi")}, []string{"1"}},
	"a volume for reading alone":               {[]corev1.PersistentVolume{static("v", func(pv *corev1.PersistentVolume) { pv.Spec.AccessModes[0] = corev1.ReadOnlyMany })}, []Wanted{waiting("1", "3Gi")}, []string{"1"}},
	"a single volume for two claims":           {[]corev1.PersistentVolume{static("v")}, []Wanted{waiting("1", "3Gi"), waiting("2", "2Gi")}, []string{"1"}},
	"two volumes, the smaller for the smaller": {[]corev1.PersistentVolume{static("v"), static("w", holding("2Gi"))}, []Wanted{waiting("1", "3Gi"), waiting("2", "2Gi")}, nil},
	"a claim with a chosen node":               {[]corev1.PersistentVolume{static("v")}, []Wanted{waiting("1", "3Gi", func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{SelectedNode: "n"} })}, []string{"1"}},
	"an inline volume beside a claim":          {[]corev1.PersistentVolume{static("v")}, []Wanted{{}, waiting("1", "3Gi")}, []string{"inline"}},
	"a claim that selects the volume by labels": {[]corev1.PersistentVolume{static("v")}, []Wanted{waiting("1", "3Gi", func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "old"}}
	})}, []string{"1"}},
}

func TestAStaticVolumeServesAClaimWhereTheNodeReachesIt(t *testing.T) {
	for name, test := range staticCases {
		t.Run(name, func(t *testing.T) {
			lists := &Lists{PersistentVolumes: test.volumes, Nodes: []corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"zone": "a"}}}}}
			s, err := FindStatic(t.Context(), lists, test.wanted)
			if err != nil {
				t.Fatal(err)
			}
			unmatched, err := s.Unmatched(t.Context(), test.wanted, "n")
			if err != nil {
				t.Fatal(err)
			}
			var room []string
			for _, w := range unmatched {
				if w.Claim == nil {
					room = append(room, "inline")
				} else {
					room = append(room, w.Claim.Name)
				}
			}
			if !slices.Equal(room, test.room) {
				t.Errorf("%v need room, want %v", room, test.room)
			}
			if unknown, err := s.Unmatched(t.Context(), test.wanted, "m"); err != nil || len(unknown) != len(test.wanted) {
				t.Errorf("on a node that nobody knows %d volumes need room (%v), want all %d", len(unknown), err, len(test.wanted))
			}
		})
	}
}
