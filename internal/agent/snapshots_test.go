package agent

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
)

// snapshot is a Snapshot of a volume, as the controller makes one.
func (s *site) snapshot(name, volume string) *v1alpha1.Snapshot {
	return &v1alpha1.Snapshot{
		ObjectMeta: metav1.ObjectMeta{
			Name: v1alpha1.SnapshotName(s.name + name), Finalizers: []string{v1alpha1.SnapshotFinalizer},
			Labels: map[string]string{v1alpha1.ReplicaLabel(s.name): ""},
		},
		Spec: v1alpha1.SnapshotSpec{
			Volume: v1alpha1.VolumeName(s.name + volume), VolumeMode: v1alpha1.Block, PoolClass: "pc-" + s.name,
			Replicas: []v1alpha1.ReplicaSpec{{Node: s.name, Pool: s.pool.Name}},
		},
	}
}

// getSnapshot reads a Snapshot; nil if it is gone.
func (s *site) getSnapshot(name string) *v1alpha1.Snapshot {
	s.t.Helper()
	o := &v1alpha1.Snapshot{}
	err := s.Client.Get(s.t.Context(), client.ObjectKey{Name: v1alpha1.SnapshotName(s.name + name)}, o)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// tells says whether the node's entry of a Snapshot has a state and a reason.
func (s *site) tells(name string, state v1alpha1.SnapshotState, reason string) func() bool {
	return func() bool {
		e := s.getSnapshot(name).Entry(s.name)
		return e != nil && e.State == state && e.Reason == reason
	}
}

// release plays the controller's part in a Snapshot's deletion.
func (s *site) release(name string) {
	s.t.Helper()
	for o := s.getSnapshot(name); o != nil; o = s.getSnapshot(name) {
		controllerutil.RemoveFinalizer(o, v1alpha1.SnapshotFinalizer)
		err := s.Client.Update(s.t.Context(), o)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) {
			s.t.Fatal(err)
		}
	}
}

// kept says whether the node has a snapshot.
func (s *site) kept(name string) bool {
	_, err := s.node.GetSnapshot(s.t.Context(), v1alpha1.SnapshotName(s.name+name))
	return err == nil
}

// from makes a volume a copy of a snapshot, or of a volume.
func (s *site) from(snapshot, volume, size string) func(*v1alpha1.Volume) {
	return func(v *v1alpha1.Volume) {
		v.Spec.Capacity, v.Spec.Source = resource.MustParse(size), &v1alpha1.VolumeSource{}
		if snapshot != "" {
			v.Spec.Source.Snapshot = v1alpha1.SnapshotName(s.name + snapshot)
		} else {
			v.Spec.Source.Volume = v1alpha1.VolumeName(s.name + volume)
		}
	}
}

// write replaces the content of a volume, once it bears its filesystem.
func (s *site) write(name, text string) {
	s.t.Helper()
	id := v1alpha1.VolumeName(s.name + name)
	await(s.t, "the filesystem", func() bool { return s.disks.Formats(id) == 1 })
	s.disks.Write(id, text)
}

func (s *site) read(name string) string { return s.disks.Read(v1alpha1.VolumeName(s.name + name)) }

// photographed is a site with volume a and its snapshot s. The volume held "what was" when
// the snapshot was taken, and holds "what is" now.
func photographed(t *testing.T) *site {
	t.Helper()
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	s.write("a", "what was")
	s.create(s.snapshot("s", "a"))
	await(t, "the snapshot", s.tells("s", v1alpha1.SnapshotReady, v1alpha1.ReasonTaken))
	s.write("a", "what is")
	return s
}

// free plays the controller's part in the deletion of both.
func (s *site) free() { s.finish("a"); s.release("s") }

func TestASnapshotIsTakenInOneWriteAndListed(t *testing.T) {
	s := photographed(t)
	defer s.free()
	e := s.getSnapshot("s").Entry(s.name)
	if e.RestoreSize.Value() != gib || e.Allocated.Value() != gib || e.Taken == nil || e.Pool != s.pool.Name {
		t.Errorf("entry %+v", e)
	}
	if n := s.traffic.count("PATCH", "/snapshots/"+s.getSnapshot("s").Name+"/status"); n != 1 {
		t.Errorf("%d writes to the Snapshot; want 1", n)
	}
	await(t, "the inventory", func() bool {
		items := s.inventory()
		return len(items) == 1 && items[0].Snapshot == s.getSnapshot("s").Name && items[0].Allocated.Value() == gib
	})
	if n := s.storageNode(); len(n.Status.Conditions) != 1 {
		t.Errorf("the snapshot shows as an orphan: %+v", n.Status.Conditions)
	}
}

func TestASnapshotIsRestoredIntoALargerVolume(t *testing.T) {
	s := photographed(t)
	defer s.free()
	s.create(s.volume("b", s.from("s", "", "2Gi")))
	defer s.finish("b")
	await(t, "the copy", s.says("b", isReady, v1alpha1.ReasonCarved))
	if got := s.read("b"); got != "what was" || s.entry("b").Capacity.Value() != 2*gib {
		t.Errorf("the copy holds %q, entry %+v", got, s.entry("b"))
	}
	if s.disks.Formats(s.get("b").Name) != 0 {
		t.Error("a filesystem was made over the data")
	}
}

func TestAVolumeIsCloned(t *testing.T) {
	s := photographed(t)
	defer s.free()
	s.create(s.volume("b", s.from("", "a", "1Gi")))
	defer s.finish("b")
	await(t, "the copy", s.says("b", isReady, v1alpha1.ReasonCarved))
	if got := s.read("b"); got != "what is" {
		t.Errorf("the copy holds %q", got)
	}
}

func TestASnapshotOutlivesItsVolumeAndIsThenDeleted(t *testing.T) {
	s := photographed(t)
	defer s.free()
	if err := s.Client.Delete(t.Context(), s.get("a")); err != nil {
		t.Fatal(err)
	}
	await(t, "the data to go", s.says("a", isGone, v1alpha1.ReasonRemoved))
	s.create(s.volume("b", s.from("s", "", "1Gi")))
	defer s.finish("b")
	await(t, "the copy", s.says("b", isReady, v1alpha1.ReasonCarved))
	if err := s.Client.Delete(t.Context(), s.getSnapshot("s")); err != nil {
		t.Fatal(err)
	}
	await(t, "the snapshot to go", s.tells("s", v1alpha1.SnapshotGone, v1alpha1.ReasonRemoved))
	if s.kept("s") || s.read("b") != "what was" {
		t.Errorf("snapshot kept: %v, the copy holds %q", s.kept("s"), s.read("b"))
	}
	await(t, "the inventory to be empty", func() bool { return len(s.inventory()) == 0 })
}

func TestALostSnapshotIsNotTakenAgain(t *testing.T) {
	s := photographed(t)
	defer s.free()
	taken := s.getSnapshot("s").Entry(s.name).Taken
	if err := s.node.DeleteSnapshot(t.Context(), s.getSnapshot("s").Name); err != nil {
		t.Fatal(err)
	}
	await(t, "the loss to be reported", s.tells("s", v1alpha1.SnapshotFailed, v1alpha1.ReasonDeviceMissing))
	if s.kept("s") || !s.getSnapshot("s").Entry(s.name).Taken.Equal(taken) {
		t.Errorf("taken again: %v, entry %+v", s.kept("s"), s.getSnapshot("s").Entry(s.name))
	}
}

func TestASnapshotWaitsForRoom(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	if err := s.disks.PutForeign(s.pool, "root", 9*gib); err != nil {
		t.Fatal(err)
	}
	s.create(s.snapshot("s", "a"))
	defer s.finish("a")
	defer s.release("s")
	await(t, "the refusal", s.tells("s", v1alpha1.SnapshotFailed, v1alpha1.ReasonNoSpace))
	s.disks.RemoveForeign(s.pool, "root")
	await(t, "the snapshot", s.tells("s", v1alpha1.SnapshotReady, v1alpha1.ReasonTaken))
}

func TestASnapshotWhoseObjectVanishesIsKeptAndReported(t *testing.T) {
	s := photographed(t)
	defer s.free()
	s.release("s")
	if err := s.Client.Delete(t.Context(), s.getSnapshot("s")); err != nil {
		t.Fatal(err)
	}
	await(t, "the orphan to be reported", func() bool {
		n := s.storageNode()
		return n != nil && len(n.Status.Conditions) == 2 && n.Status.Conditions[1].Type == v1alpha1.ConditionOrphaned
	})
	if !s.kept("s") {
		t.Error("the snapshot went with its object")
	}
}

func TestASnapshotInAPoolWithoutSnapshotsIsRefusedForGood(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	s.node = plain{s.node}
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	s.create(s.snapshot("s", "a"))
	defer s.finish("a")
	defer s.release("s")
	await(t, "the refusal", s.tells("s", v1alpha1.SnapshotFailed, v1alpha1.ReasonUnsupported))
	if e := s.getSnapshot("s").Entry(s.name); e.Taken != nil || e.Message == "" {
		t.Errorf("entry %+v", e)
	}
}

// plain is a node whose pools have no snapshots.
type plain struct{ poold.Node }

func (plain) Snapshot(context.Context, provision.SnapshotRequest) (provision.Snapshot, error) {
	return provision.Snapshot{}, provision.ErrUnsupported
}
