package agent

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

const (
	isReady  = v1alpha1.ReplicaReady
	isFailed = v1alpha1.ReplicaFailed
	isGone   = v1alpha1.ReplicaGone
)

func TestCreateIsOneWriteAndThenFormats(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc)
	s.start()
	await(t, "the first report", func() bool { return s.storageNode() != nil })
	reads := s.traffic.count("GET", "/volumes")
	s.create(s.volume("a"))
	defer s.finish("a")
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	id := v1alpha1.VolumeName(s.name + "a")
	await(t, "the filesystem", func() bool {
		v, _ := s.disks.Device("/dev/" + s.pool.Name + "/" + id)
		return v.Filesystem == provision.Ext4
	})
	e := s.entry("a")
	if e.Capacity.Value() != gib || e.Requested.Value() != gib || !e.Ready || e.Pool != s.pool.Name {
		t.Errorf("entry %+v", e)
	}
	if n := s.traffic.count("PATCH", "/volumes/"+id+"/status"); n != 1 {
		t.Errorf("%d writes to the Volume; want 1", n)
	}
	if n := s.traffic.count("GET", "/volumes") - reads; n != 0 {
		t.Errorf("%d lists of Volumes after start-up; want none", n)
	}
}

func TestExpandAndShrinkBack(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	defer s.finish("a")
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	s.edit("a", func(v *v1alpha1.Volume) { v.Spec.Capacity = resource.MustParse("2Gi") })
	await(t, "the larger size", func() bool { return s.entry("a").Capacity.Value() == 2*gib })
	s.edit("a", func(v *v1alpha1.Volume) { v.Spec.Capacity = resource.MustParse("99Gi") })
	await(t, "the refusal", s.says("a", isReady, v1alpha1.ReasonNoSpace))
	if e := s.entry("a"); e.Capacity.Value() != 2*gib || e.Requested.Value() != 99*gib {
		t.Errorf("entry %+v", e)
	}
	s.edit("a", func(v *v1alpha1.Volume) { v.Spec.Capacity = resource.MustParse("2Gi") })
	await(t, "the wish that was taken back", s.says("a", isReady, v1alpha1.ReasonCarved))
}

func TestDeletionRemovesTheDataAndSaysSo(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	defer s.finish("a")
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	if err := s.Client.Delete(t.Context(), s.get("a")); err != nil {
		t.Fatal(err)
	}
	await(t, "the data to go", s.says("a", isGone, v1alpha1.ReasonRemoved))
	if s.has("a") {
		t.Error("the entry says Gone and the data is there")
	}
}

func TestTheDeletionOfAVolumeThatWasNeverCarvedIsAnswered(t *testing.T) {
	s := newSite(t, "")
	s.create(s.volume("a"))
	defer s.finish("a")
	if err := s.Client.Delete(t.Context(), s.get("a")); err != nil {
		t.Fatal(err)
	}
	s.start()
	await(t, "the answer", s.says("a", isGone, v1alpha1.ReasonRemoved))
}

func TestAFullNodeRefusesAndTheVolumeGoesElsewhere(t *testing.T) {
	s, other := newSite(t, "-1"), newSite(t, "-2")
	pc, _ := s.classes()
	pc.Spec.LVM.VolumeGroups = append(pc.Spec.LVM.VolumeGroups, other.pool.Name)
	if err := s.disks.PutForeign(s.pool, "root", 10*gib); err != nil {
		t.Fatal(err)
	}
	s.create(pc, s.volume("a"))
	defer s.finish("a")
	s.start()
	other.start()
	await(t, "the refusal", s.says("a", isFailed, v1alpha1.ReasonNoSpace))
	s.edit("a", func(v *v1alpha1.Volume) {
		v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: other.name, Pool: other.pool.Name}}
		v.Labels[v1alpha1.ReplicaLabel(other.name)] = ""
	})
	await(t, "the first node to let go", s.says("a", isGone, v1alpha1.ReasonRemoved))
	await(t, "the other node to carve", func() bool {
		for _, e := range s.get("a").Status.Replicas {
			if e.Node == other.name && e.Ready {
				return true
			}
		}
		return false
	})
	if s.has("a") {
		t.Error("the first node has the data")
	}
}

func TestALostLabelIsNoDeletion(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"), s.volume("b"))
	defer s.finish("a")
	defer s.finish("b")
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	s.edit("a", func(v *v1alpha1.Volume) { v.Labels = nil })
	// The agent's next action for another volume shows that it has seen the event.
	await(t, "another replica", s.says("b", isReady, v1alpha1.ReasonCarved))
	s.edit("b", func(v *v1alpha1.Volume) { v.Spec.Capacity = resource.MustParse("2Gi") })
	await(t, "another expansion", func() bool { return s.entry("b").Capacity.Value() == 2*gib })
	if !s.has("a") {
		t.Error("the data went with the label")
	}
	if e := s.entry("a"); e.State != isReady {
		t.Errorf("entry %+v", e)
	}
}

func TestAnObjectThatVanishesLeavesItsDataAndIsReported(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	s.edit("a", func(v *v1alpha1.Volume) { v.Finalizers = nil })
	if err := s.Client.Delete(t.Context(), s.get("a")); err != nil {
		t.Fatal(err)
	}
	await(t, "the orphan to be reported", func() bool {
		n := s.storageNode()
		return n != nil && len(n.Status.Conditions) == 2 && n.Status.Conditions[1].Type == v1alpha1.ConditionOrphaned
	})
	if !s.has("a") {
		t.Error("the data went with the object")
	}
}

func TestARestartedAgentFindsTheReplicaThatItCarved(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	defer s.finish("a")
	// An earlier run carved the replica and ended before it could report it.
	_, err := s.node.Create(t.Context(), provision.CreateRequest{ID: s.get("a").Name, Pool: s.pool, Size: gib})
	if err != nil {
		t.Fatal(err)
	}
	first := s.start()
	await(t, "the replica to be reported", s.says("a", isReady, v1alpha1.ReasonCarved))
	first.stop()
	version := s.get("a").ResourceVersion
	s.edit("a", func(v *v1alpha1.Volume) { v.Spec.Capacity = resource.MustParse("2Gi") })
	s.start()
	await(t, "the expansion", func() bool { return s.entry("a").Capacity.Value() == 2*gib })
	if s.get("a").ResourceVersion == version {
		t.Error("the Volume was not written")
	}
}

func TestAnAPIServerThatIsAwayLosesNothing(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	defer s.finish("a")
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	s.traffic.cut()
	s.edit("a", func(v *v1alpha1.Volume) { v.Spec.Capacity = resource.MustParse("2Gi") })
	s.create(s.volume("b"))
	defer s.finish("b")
	if err := s.disks.PutForeign(s.pool, "root", gib); err != nil {
		t.Fatal(err)
	}
	s.traffic.mend()
	await(t, "the expansion", func() bool { return s.entry("a").Capacity.Value() == 2*gib })
	await(t, "the new replica", s.says("b", isReady, v1alpha1.ReasonCarved))
	await(t, "the foreign bytes", func() bool {
		n := s.storageNode()
		return n != nil && len(n.Status.Pools) == 1 && n.Status.Pools[0].Foreign.Value() == gib
	})
}

func TestALostDeviceShowsWithoutAnyEvent(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	defer s.finish("a")
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	s.disks.RemovePool(s.pool)
	await(t, "the loss to be reported", s.says("a", isFailed, v1alpha1.ReasonDeviceMissing))
	await(t, "the pool to be shown as missing", func() bool {
		n := s.storageNode()
		return len(n.Status.Pools) == 1 && n.Status.Pools[0].Health == v1alpha1.PoolMissing
	})
}
