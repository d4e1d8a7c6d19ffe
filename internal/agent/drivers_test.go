package agent

import (
	"testing"

	"berth.dev/berth/api/v1alpha1"
)

// A volume of another driver, whose agent is another one on this node, names the node and a pool
// of it. Its agent alone answers for it.
func TestAnAgentMakesNoVolumeOfAnotherDriver(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	theirs := func(v *v1alpha1.Volume) { v.Spec.Driver = "other.example.org" }
	s.create(pc, s.volume("a", theirs), s.volume("b"))
	defer s.finish("b")
	s.start()
	await(t, "the agent's own volume", s.says("b", isReady, v1alpha1.ReasonCarved))
	// Another change shows that the agent has gone on, and has no more to do.
	s.edit("a", func(v *v1alpha1.Volume) { v.Annotations = map[string]string{"example.org/look": "again"} })
	s.create(s.volume("c"))
	defer s.finish("c")
	await(t, "the next volume", s.says("c", isReady, v1alpha1.ReasonCarved))
	if e := s.entry("a"); e != nil || s.has("a") {
		t.Errorf("it says %+v of the other driver's volume, and has it: %v", e, s.has("a"))
	}
	s.edit("a", func(v *v1alpha1.Volume) { v.Finalizers = nil })
	if err := s.Client.Delete(t.Context(), s.get("a")); err != nil {
		t.Error(err)
	}
}

// Only another driver's volume says that the pool was there: its data may come back with the disks.
func TestAPoolThatVolumesOfAnotherDriverAreInIsNotMadeAnew(t *testing.T) {
	s, c, first := grouped(t)
	first.stop()
	theirs := s.volume("a", func(v *v1alpha1.Volume) {
		v.Spec.Driver = "other.example.org"
		v.Spec.PoolClass, v.Spec.Replicas = c.Name, []v1alpha1.ReplicaSpec{{Node: s.name, Pool: s.made().Name}}
	})
	s.create(theirs)
	theirs.Status.Replicas = []v1alpha1.ReplicaStatus{{Node: s.name, Pool: s.made().Name, State: v1alpha1.ReplicaReady, Ready: true, Capacity: &theirs.Spec.Capacity}}
	if err := s.Client.Status().Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	s.loseGroup()
	s.edit("a", func(v *v1alpha1.Volume) { v.Finalizers = nil })
	if err := s.Client.Delete(t.Context(), s.get("a")); err != nil {
		t.Error(err)
	}
}
