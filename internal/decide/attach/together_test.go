package attach

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// reach lets the PersistentVolume of a volume be used on these nodes only.
func (b *Board) reach(t *testing.T, volume string, nodes ...string) {
	t.Helper()
	s, err := nodeaffinity.NewNodeSelector(&corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: nodes}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	pv := b.bounds["pv-"+volume]
	pv.Reach = s
	b.SetBound("pv-"+volume, pv)
}

// TestAStandbyLeavesRoomForTwoOtherVolumesOfThePod: a pod on n0 uses volumes v, log and aux.
func TestAStandbyLeavesRoomForTwoOtherVolumesOfThePod(t *testing.T) {
	three := func(v *Volume) { v.Factor, v.MaxShares = 3, 3 }
	for name, test := range map[string]struct {
		slots [5]int
		play  func(*testing.T, *Board)
		want  string
	}{
		"the node of another standby cannot have the third volume": {
			[5]int{9, 3, 3, 3, 0}, func(t *testing.T, b *Board) {
				b.SetNode("n3", func(n *Node) { n.Labels[topologyZone] = "b" })
				b.disk("log", []string{"n0", "n3"}, three)
				b.disk("aux", []string{"n0", "n2"}, three)
				b.reach(t, "aux", "n0", "n1", "n2")
			}, "n2"},
		"both others can go to one node only": {
			[5]int{9, 2, 2, 0, 0}, func(t *testing.T, b *Board) {
				b.SetNode("n1", func(n *Node) { n.Labels[topologyZone] = "b" })
				b.reach(t, "log", "n0", "n1")
				b.reach(t, "aux", "n0", "n1")
			}, "n2"},
		"one of the others leaves the only node of the other one": {
			[5]int{9, 1, 1, 1, 1}, func(t *testing.T, b *Board) {
				b.disk("log", []string{"n0"}, three)
				b.reach(t, "log", "n0", "n1")
				b.reach(t, "aux", "n0", "n1", "n2", "n3")
				b.reach(t, "v", "n0", "n3", "n4")
			}, "n3"},
	} {
		t.Run(name, func(t *testing.T) {
			b, nodes := New(), names("n", len(test.slots))
			for i, node := range nodes {
				b.good(node, test.slots[i], func(n *Node) { n.Labels[topologyZone], n.Cordoned = "a", test.slots[i] == 0 })
			}
			volumes := []string{"v", "log", "aux"}
			for _, v := range volumes {
				b.disk(v, []string{"n0"})
			}
			b.pod("p", "n0", volumes)
			test.play(t, b)
			if got, _ := b.rebuilds("v", nodes); got != test.want {
				t.Errorf("it goes to %q, want %s", got, test.want)
			}
		})
	}
}
