package extender

import (
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/schedule/cases"
)

// withStatic is a case with a PersistentVolume on one node that every claim matches.
func withStatic(name, node string) *cases.Case {
	c := cases.All()[name]
	for host := range c.Nodes {
		c.Lists.Nodes = append(c.Lists.Nodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host, Labels: map[string]string{v1alpha1.TopologyKey: host}}})
	}
	pv := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "static"}}
	pv.Spec.StorageClassName, pv.Status.Phase = "local", corev1.VolumeAvailable
	pv.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Ti")}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: v1alpha1.TopologyKey, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}}
	c.PersistentVolumes = append(c.PersistentVolumes, pv)
	return &c
}

func TestAClaimThatAStaticVolumeServesNeedsNoRoom(t *testing.T) {
	c := withStatic("volumes of others are in the way", "small")
	a := ask(t, c)
	nodes := slices.Sorted(maps.Keys(c.Nodes))
	if got := a.filter(c.Pod, nodes); !slices.Equal(*got.NodeNames, []string{"large", "small"}) {
		t.Fatalf("fits on %v (%v), want both: small has a volume that exists, and large has room", *got.NodeNames, got.FailedAndUnresolvableNodes)
	}
	a.wantFree("small", gi)
	a.wantFree("large", 18*gi)
	for _, host := range a.prioritize(c.Pod, nodes) {
		if host.Host == "small" && host.Score != maxPriority {
			t.Errorf("the node with the volume has priority %d, want %d", host.Score, maxPriority)
		}
	}
}

func TestAStaticVolumeServesOneOfSeveralClaims(t *testing.T) {
	c := withStatic("several claims are fitted together", "n")
	a := ask(t, c)
	if got := a.filter(c.Pod, []string{"n"}); !slices.Equal(*got.NodeNames, []string{"n"}) {
		t.Fatalf("refused with %v", got.FailedAndUnresolvableNodes)
	}
	a.wantFree("n", 2*gi)
}
