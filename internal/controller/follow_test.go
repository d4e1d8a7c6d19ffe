package controller_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/usecase/volumes"
)

// A scheduler that does not know where a source is chooses any node. The first call makes the
// copy on the node of the source. The provisioner makes a PersistentVolume of the answer, and
// that leads the pod there.
func TestACopyLeadsItsPodToItsSource(t *testing.T) {
	c := newCluster(t)
	source, other := c.node(t, "source", 10*gi), c.node(t, "other", 20*gi)
	p := controllertest.Start(t, c.Environment)
	v := mustCreate(t, p, c.request(source))
	only := func(nodes ...string) []corev1.TopologySelectorTerm {
		return []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: v1alpha1.TopologyKey, Values: nodes}}}}
	}
	tests := map[string]struct {
		selected string
		allowed  []corev1.TopologySelectorTerm
		change   func(*volumes.Request)
		follows  bool
	}{
		"a scheduler chose another node":                                          {selected: other.Name, follows: true},
		"a scheduler chose another node, and the class allows both nodes":         {selected: other.Name, allowed: only(source.Name, other.Name), follows: true},
		"a scheduler chose another node, and the class forbids the source's node": {selected: other.Name, allowed: only(other.Name)},
		"a scheduler chose another node, and the class names another topology":    {selected: other.Name, allowed: []corev1.TopologySelectorTerm{{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: "zone", Values: []string{source.Name}}}}}},
		"no scheduler has chosen a node":                                          {},
		"a scheduler has chosen a third node meanwhile":                           {selected: "third"},
		"a new claim has the name of the old claim":                               {selected: other.Name, change: func(r *volumes.Request) { r.Claim.UID = "another" }},
		"the claim is not known":                                                  {selected: other.Name, change: func(r *volumes.Request) { r.Claim = nil }},
		"the volume is no copy":                                                   {selected: other.Name, change: func(r *volumes.Request) { r.Source, r.FSType = nil, v1alpha1.Ext4 }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mode := storagev1.VolumeBindingWaitForFirstConsumer
			class := &storagev1.StorageClass{
				ObjectMeta: metav1.ObjectMeta{Name: prefix(t)}, Provisioner: v1alpha1.LocalDriverName, VolumeBindingMode: &mode,
				Parameters: map[string]string{"poolClass": c.class}, AllowedTopologies: test.allowed,
			}
			if err := c.Client.Create(t.Context(), class); err != nil {
				t.Fatal(err)
			}
			claim := c.claim(t, func(claim *corev1.PersistentVolumeClaim) {
				claim.Name, claim.Spec.StorageClassName = class.Name, &class.Name
				if test.selected != "" {
					claim.Annotations = map[string]string{volumes.SelectedNode: test.selected}
				}
			})
			r := c.requestFor(claim, other)
			r.Source, r.FSType = &v1alpha1.VolumeSource{Volume: v.ID}, ""
			if test.change != nil {
				test.change(&r)
			}
			if !test.follows && r.Source != nil {
				_, err := p.Volumes.Create(within(t), r)
				wantError(t, err, volumes.ErrUnplaceable, "which is on node "+source.Name)
				return
			}
			want := other.Name
			if test.follows {
				want = source.Name
			}
			for range 2 { // asked again, the answer is the same
				if got := mustCreate(t, p, r); len(got.Nodes) != 1 || got.Nodes[0] != want {
					t.Errorf("it is on %v, want %s", got.Nodes, want)
				}
			}
		})
	}
}
