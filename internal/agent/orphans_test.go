package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/quarantine"
)

// orphan is the node's only orphan; nil if it has none.
func (s *site) orphan() *v1alpha1.Orphan {
	s.t.Helper()
	for _, i := range s.inventory() {
		if i.Orphan != nil {
			return i.Orphan
		}
	}
	return nil
}

func (s *site) orphaned() bool { return s.orphan() != nil }

// deserted prepares a site whose volume a is formatted and has lost its Volume.
func deserted(t *testing.T, prepare ...func(*site)) (*site, *agent) {
	t.Helper()
	s := newSite(t, "")
	for _, p := range prepare {
		p(s)
	}
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	a := s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	await(t, "the filesystem", s.formatted("a"))
	s.vanish("a")
	await(t, "the orphan", s.orphaned)
	return s, a
}

func (s *site) formatted(name string) func() bool {
	return func() bool {
		v, _ := s.disks.Device("/dev/" + s.pool.Name + "/" + v1alpha1.VolumeName(s.name+name))
		return v.Filesystem == provision.Ext4
	}
}

// adopt adopts volume a, as an administrator does, and cleans up after the test.
func (s *site) adopt() (quarantine.Adopted, error) {
	s.t.Helper()
	done, err := quarantine.Adopt(s.t.Context(), s.Client, quarantine.Adoption{Node: s.name, Name: v1alpha1.VolumeName(s.name + "a")})
	if done.NewPersistentVolume {
		s.t.Cleanup(func() {
			if err := client.IgnoreNotFound(s.Client.Delete(context.WithoutCancel(s.t.Context()), done.PersistentVolume)); err != nil {
				s.t.Error(err)
			}
		})
	}
	return done, err
}

func (s *site) forget() error {
	_, err := quarantine.Forget(s.t.Context(), s.Client, s.name, v1alpha1.VolumeName(s.name+"a"), time.Now())
	return err
}

func TestAnOrphanIsAdoptedWithItsData(t *testing.T) {
	s, _ := deserted(t)
	done, err := s.adopt()
	if err != nil {
		t.Fatal(err)
	}
	defer s.vanish("a")
	await(t, "the data to be found", s.says("a", isReady, v1alpha1.ReasonCarved))
	await(t, "the report to show no orphan", func() bool { return !s.orphaned() && len(s.inventory()) == 0 })
	if n := s.disks.Formats(done.Volume.Name); n != 1 {
		t.Errorf("formatted %d times, want once, long ago", n)
	}
	pv := done.PersistentVolume.Spec
	if pv.CSI.VolumeHandle != done.Volume.Name || pv.CSI.FSType != "ext4" || pv.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("persistent volume %+v", pv)
	}
	again, err := s.adopt()
	if err != nil || again.NewVolume || again.NewPersistentVolume {
		t.Errorf("adopting it again: %+v, %v", again, err)
	}
}

func TestAnOrphanThatAPodHadAsARawBlockVolumeIsAdoptedAsOne(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a", func(v *v1alpha1.Volume) { v.Spec.VolumeMode, v.Spec.FSType = v1alpha1.Block, "" }))
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	id := v1alpha1.VolumeName(s.name + "a")
	if _, err := s.node.Format(t.Context(), provision.FormatRequest{ID: id, Filesystem: provision.Raw}); err != nil {
		t.Fatal(err)
	}
	s.vanish("a")
	await(t, "the orphan", s.orphaned)
	done, err := s.adopt()
	if err != nil {
		t.Fatal(err)
	}
	defer s.vanish("a")
	await(t, "the data to be found", s.says("a", isReady, v1alpha1.ReasonCarved))
	if mode := done.PersistentVolume.Spec.VolumeMode; mode == nil || *mode != corev1.PersistentVolumeBlock || s.disks.Formats(id) != 0 {
		t.Errorf("adopted as %+v, formatted %d times", done.PersistentVolume.Spec, s.disks.Formats(id))
	}
}

func TestAnOrphanedSnapshotIsAdoptedAndRestored(t *testing.T) {
	s := photographed(t)
	defer s.free()
	s.release("s")
	if err := s.Client.Delete(t.Context(), s.getSnapshot("s")); err != nil {
		t.Fatal(err)
	}
	await(t, "the orphan", s.orphaned)
	_, made, err := quarantine.AdoptSnapshot(t.Context(), s.Client, quarantine.SnapshotAdoption{Node: s.name, Name: v1alpha1.SnapshotName(s.name + "s")})
	if err != nil || !made {
		t.Fatal(made, err)
	}
	await(t, "the snapshot to be found", s.tells("s", v1alpha1.SnapshotReady, v1alpha1.ReasonTaken))
	await(t, "the report to show no orphan", func() bool { return !s.orphaned() })
	s.create(s.volume("b", s.from("s", "", "1Gi")))
	defer s.finish("b")
	await(t, "the copy", s.says("b", isReady, v1alpha1.ReasonCarved))
	if got := s.read("b"); got != "what was" {
		t.Errorf("the copy holds %q", got)
	}
}

func TestAnAdoptedVolumeWhoseDataIsGoneIsNotMade(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a", func(v *v1alpha1.Volume) { v.Spec.Adopted = true }))
	defer s.finish("a")
	s.start()
	await(t, "the loss to be reported", s.says("a", isFailed, v1alpha1.ReasonDeviceMissing))
	if s.has("a") {
		t.Error("an empty volume took the place of the data")
	}
}

func TestAForgottenOrphanIsDeleted(t *testing.T) {
	s, _ := deserted(t)
	if err := s.forget(); err != nil {
		t.Fatal(err)
	}
	await(t, "the data to go", func() bool { return !s.has("a") })
	await(t, "the report to say so", func() bool { return len(s.inventory()) == 0 })
}

func TestAForgottenOrphanIsKeptWhileItIsInUse(t *testing.T) {
	s, _ := deserted(t)
	release := s.disks.Open(v1alpha1.VolumeName(s.name + "a"))
	if err := s.forget(); err != nil {
		t.Fatal(err)
	}
	await(t, "the refusal", func() bool { return s.orphan() != nil && s.orphan().Message != "" && s.blocked() })
	if !s.has("a") {
		t.Error("data that was in use is gone")
	}
	release()
	await(t, "the data to go", func() bool { return !s.has("a") })
}

// blocked says whether the report tells why the orphan cannot be deleted.
func (s *site) blocked() bool {
	id := v1alpha1.VolumeName(s.name + "a")
	want := "volume " + id + " on node " + s.name + " is to be deleted (it is named in spec.forget), and cannot be: "
	o := s.orphan()
	return o != nil && len(o.Message) > len(want) && o.Message[:len(want)] == want
}

func TestAnOrphanThatHasAnObjectAgainIsNotForgotten(t *testing.T) {
	s, a := deserted(t)
	a.stop() // so that the entry in spec.forget is still there when the object is made
	if err := s.forget(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.adopt(); !errors.Is(err, quarantine.ErrRefused) {
		t.Errorf("it was adopted although it was to be deleted: %v", err)
	}
	s.create(s.volume("a")) // from a backup
	defer s.finish("a")
	s.start()
	await(t, "the data to be found", s.says("a", isReady, v1alpha1.ReasonFound))
	if !s.formatted("a")() {
		t.Error("another volume is in the place of the data")
	}
	if err := s.forget(); !errors.Is(err, quarantine.ErrRefused) {
		t.Errorf("a volume with an object was forgotten: %v", err)
	}
}

func TestAnOrphanStaysOneSinceTheSameTimeWhenTheAgentStartsAnew(t *testing.T) {
	s, a := deserted(t)
	since := s.orphan().Since
	a.stop()
	revision := s.revision()
	s.create(s.volume("b"))
	s.start()
	await(t, "another replica", s.says("b", isReady, v1alpha1.ReasonCarved))
	s.vanish("b")
	await(t, "a report of the new agent", s.hasSeen(revision))
	await(t, "both orphans", func() bool {
		return len(s.inventory()) == 2 && s.inventory()[0].Orphan != nil && s.inventory()[1].Orphan != nil
	})
	for _, i := range s.inventory() {
		if i.Volume == v1alpha1.VolumeName(s.name+"a") && !i.Orphan.Since.Equal(&since) {
			t.Errorf("an orphan since %s, want %s", i.Orphan.Since, since)
		}
	}
}

func TestAnOrphanIsDeletedAtItsDeadlineIfOrphansHaveOne(t *testing.T) {
	s, _ := deserted(t, func(s *site) { s.retention = time.Second })
	await(t, "the data to go", func() bool { return !s.has("a") })
}

// An API server from a backup may have forgotten the volume, and this may be the only copy that has its last writes.
func TestAnOrphanThatIsOneOfSeveralCopiesGoesByAnOrderAlone(t *testing.T) {
	s := newSite(t, "")
	s.retention = time.Second
	pc, _ := s.classes()
	s.create(pc, s.volume("a"), s.volume("b"))
	s.start()
	for _, name := range []string{"a", "b"} {
		await(t, "the replica to be ready", s.says(name, isReady, v1alpha1.ReasonCarved))
		await(t, "the filesystem", s.formatted(name))
	}
	epoch := lineage.Epoch{Number: 1, ID: "one"}
	promise := ownership.Promise{Epoch: epoch, Primary: s.name, Lineage: lineage.Lineage{{Epoch: epoch}}}
	copies := memory.NewReplicator(memory.New(s.disks, nil), time.Now)
	if err := copies.Mark(t.Context(), v1alpha1.VolumeName(s.name+"a"), provision.Mark{Promise: promise}); err != nil {
		t.Fatal(err)
	}
	s.vanish("a")
	await(t, "the orphan", s.orphaned)
	s.vanish("b")
	await(t, "the orphan with one copy to go", func() bool { return !s.has("b") })
	if !s.has("a") {
		t.Fatal("one of several copies went by its age")
	}
	if err := s.forget(); err != nil {
		t.Fatal(err)
	}
	await(t, "the copy to go", func() bool { return !s.has("a") })
}

func TestANodeThatReturnsHasItsVolumes(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	defer s.finish("a")
	first := s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	await(t, "the filesystem", s.formatted("a"))
	await(t, "a report", func() bool { return s.storageNode() != nil })
	node := &corev1.Node{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: s.name}, node); err != nil {
		t.Fatal(err)
	}
	for _, o := range []client.Object{node, s.storageNode()} { // the controller deletes the second
		if err := s.Client.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	first.stop()
	if !s.formatted("a")() || s.entry("a").State != isReady {
		t.Fatalf("the data went with the Node, or its entry did: %+v", s.entry("a"))
	}
	node.ResourceVersion, node.UID = "", ""
	if err := s.Client.Create(t.Context(), node); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	s.start()
	await(t, "a new report", func() bool { n := s.storageNode(); return n != nil && len(n.Status.Pools) == 1 })
	s.edit("a", func(v *v1alpha1.Volume) { v.Spec.Capacity.Set(2 * gib) })
	await(t, "the volume to grow on the node that returned", func() bool { return s.entry("a").Capacity.Value() == 2*gib })
	if s.orphaned() || s.disks.Formats(v1alpha1.VolumeName(s.name+"a")) != 1 {
		t.Error("the data was not taken for the volume's")
	}
}
