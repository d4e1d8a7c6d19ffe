package agent

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/usecase/volumes"
)

// fromBackup is a site with two pools, the real controller and the real agent. The data of
// volume a is there, and the API server was restored from a backup that is older than the volume.
func fromBackup(t *testing.T) (*site, *controllertest.Process) {
	t.Helper()
	s, _ := deserted(t, func(s *site) {
		s.disks.AddPool(memory.PoolConfig{PoolRef: s.second(), Total: 20 * gib})
	})
	pc := &v1alpha1.PoolClass{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: "pc-" + s.name}, pc); err != nil {
		t.Fatal(err)
	}
	pc.Spec.LVM.VolumeGroups = []string{s.pool.Name, s.second().Name}
	if err := s.Client.Update(t.Context(), pc); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Name: s.name}, node); err != nil {
		t.Fatal(err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := s.Client.Status().Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	p := controllertest.Start(t, s.Environment)
	await(t, "a report with the orphan", func() bool {
		_, _, found := p.Book.Orphan(ledger.Volume(v1alpha1.VolumeName(s.name + "a")))
		return found && p.Book.Room(s.name, pc.Name).Largest > 0
	})
	return s, p
}

func (s *site) second() provision.PoolRef {
	return provision.PoolRef{Type: "LVM", Name: s.pool.Name + "-2"}
}

// anew is volume a as the controller makes it again for its claim, which is gone by now.
func (s *site) anew(change ...func(*v1alpha1.Volume)) *v1alpha1.Volume {
	return s.volume("a", append(change, func(v *v1alpha1.Volume) {
		v.Spec.ClaimRef = &v1alpha1.ClaimReference{Namespace: "default", Name: "data", UID: "gone"}
	})...)
}

// isAdopted adopts volume a and expects its data.
func (s *site) isAdopted() {
	s.t.Helper()
	done, err := s.adopt()
	if err != nil {
		s.t.Fatal(err)
	}
	await(s.t, "the data to be found", s.says("a", isReady, v1alpha1.ReasonCarved))
	if n := s.disks.Formats(done.Volume.Name); n != 1 || !s.has("a") || !s.get("a").Spec.Adopted {
		s.t.Errorf("formatted %d times; the data is there: %v; %+v", n, s.has("a"), done)
	}
}

func TestBackupRefusesANewVolumeAndSaysWhereTheDataIs(t *testing.T) {
	s, p := fromBackup(t)
	defer s.finish("a")
	for _, reservation := range []bool{true, false} {
		_, err := p.Volumes.Create(t.Context(), volumes.Request{
			Name: s.name + "a", Size: volumes.Size{Required: gib}, Mode: v1alpha1.Filesystem, FSType: v1alpha1.Ext4,
			PoolClass: "pc-" + s.name, Claim: &v1alpha1.ClaimReference{Namespace: "shop", Name: "db"}, Reservation: reservation,
		})
		told := "kubectl berth adopt " + s.name + " " + v1alpha1.VolumeName(s.name+"a") + " --claim shop/db"
		if err == nil || !strings.Contains(err.Error(), told) || !strings.Contains(err.Error(), s.pool.Name) || s.get("a") != nil {
			t.Errorf("error %v; made %+v", err, s.get("a"))
		}
	}
	s.isAdopted()
}

// The orphan was not reported yet when the Volume was made, so only the node can decide.
func TestBackupKeepsDataOfAReservationInAnotherPool(t *testing.T) {
	s, _ := fromBackup(t)
	defer s.finish("a")
	s.create(s.anew(func(v *v1alpha1.Volume) {
		v.Annotations = map[string]string{v1alpha1.ReservedAnnotation: ""}
		v.Spec.Replicas[0].Pool = s.second().Name
	}))
	await(t, "the collection, or the conflict", func() bool { return s.get("a") == nil || s.says("a", isFailed, v1alpha1.ReasonConflict)() })
	s.isAdopted()
}

func TestBackupKeepsDataOfAReservationInItsPool(t *testing.T) {
	s, _ := fromBackup(t)
	defer s.finish("a")
	s.create(s.anew(func(v *v1alpha1.Volume) { v.Annotations = map[string]string{v1alpha1.ReservedAnnotation: ""} }))
	await(t, "the collection, or the find", func() bool { return s.get("a") == nil || s.says("a", isReady, v1alpha1.ReasonFound)() })
	await(t, "the collection, or the end of the mark", func() bool { v := s.get("a"); return v == nil || !v.Reserved() })
	if !s.has("a") {
		t.Fatal("the data is gone")
	}
	if s.get("a") == nil {
		await(t, "the orphan", s.orphaned)
		s.isAdopted()
	}
}

func TestBackupLetsAConflictBeAdopted(t *testing.T) {
	s, _ := fromBackup(t)
	defer s.finish("a")
	s.create(s.anew(func(v *v1alpha1.Volume) { v.Spec.Replicas[0].Pool = s.second().Name }))
	await(t, "the conflict", s.says("a", isFailed, v1alpha1.ReasonConflict))
	s.isAdopted()
}

func TestBackupLetsADeletedVolumeGoWithoutTheData(t *testing.T) {
	s, _ := fromBackup(t)
	defer s.finish("a")
	v := s.anew(func(v *v1alpha1.Volume) { v.Spec.Replicas[0].Pool = s.second().Name })
	s.create(v)
	await(t, "the conflict", s.says("a", isFailed, v1alpha1.ReasonConflict))
	if err := s.Client.Delete(t.Context(), v); err != nil {
		t.Fatal(err)
	}
	await(t, "the object to go", func() bool { return s.get("a") == nil })
	await(t, "the orphan", s.orphaned)
	s.isAdopted()
}
