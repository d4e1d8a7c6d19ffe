package agent

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
)

// revision returns a revision that comes before every change from now on.
func (s *site) revision() string {
	s.t.Helper()
	var list v1alpha1.VolumeList
	if err := s.Client.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	return list.ResourceVersion
}

// hasSeen says whether the node's report was made after a revision.
func (s *site) hasSeen(revision string) func() bool {
	return func() bool {
		n := s.storageNode()
		if n == nil || n.Status.VolumesRevision == "" {
			return false
		}
		order, err := resourceversion.CompareResourceVersion(n.Status.VolumesRevision, revision)
		if err != nil {
			s.t.Fatal(err)
		}
		return order > 0
	}
}

// inventory returns the inventory of the node's report.
func (s *site) inventory() []v1alpha1.InventoryItem {
	s.t.Helper()
	var items []v1alpha1.InventoryItem
	if n := s.storageNode(); n != nil {
		for _, p := range n.Status.Pools {
			items = append(items, p.Inventory...)
		}
	}
	return items
}

// vanish deletes a Volume without waiting for its data to go.
func (s *site) vanish(name string) {
	s.t.Helper()
	s.finish(name)
	if err := s.Client.Delete(s.t.Context(), s.get(name)); err != nil {
		s.t.Fatal(err)
	}
}

func TestAVolumeThatVanishesIsInTheInventoryOfAReportThatKnowsIt(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	await(t, "a report", func() bool { return s.storageNode() != nil })
	if items := s.inventory(); len(items) != 0 {
		t.Errorf("the inventory lists %+v, although its Volume accounts for it", items)
	}
	if got := s.entry("a").Allocated; got == nil || got.Value() != gib {
		t.Errorf("the replica takes %v of its pool, want 1Gi", got)
	}
	revision := s.revision()
	s.vanish("a")
	await(t, "a report that knows of the deletion", s.hasSeen(revision))
	await(t, "the inventory", func() bool {
		items := s.inventory()
		return len(items) == 1 && items[0].Volume == v1alpha1.VolumeName(s.name+"a") && items[0].Allocated.Value() == gib
	})
}

func TestADeletionWithoutDataIsAnsweredThoughNoFigureChanges(t *testing.T) {
	s := newSite(t, "")
	s.create(s.volume("a")) // its class does not exist, so nothing is carved
	s.start()
	await(t, "the replica to be refused", s.says("a", isFailed, v1alpha1.ReasonPoolMissing))
	revision := s.revision()
	s.vanish("a")
	await(t, "a report that knows of the deletion", s.hasSeen(revision))
}

func TestADeletionThatTheAgentDidNotSeeIsAnsweredAfterItsStart(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc, s.volume("a"))
	first := s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	first.stop()
	revision := s.revision()
	s.vanish("a")
	s.start()
	await(t, "a report that knows of the deletion", s.hasSeen(revision))
	await(t, "the inventory", func() bool { return len(s.inventory()) == 1 })
}

func TestAnInlineVolumeIsInTheInventoryByItsOwner(t *testing.T) {
	s := newSite(t, "")
	pc, _ := s.classes()
	s.create(pc)
	owner := provision.Inline{PodUID: "0f3c1c9e-1d2b-4c3d-8e4f-5a6b7c8d9e0f", Name: "scratch"}
	_, err := s.node.Create(t.Context(), provision.CreateRequest{ID: "inline-" + s.name[:8], Pool: s.pool, Size: gib, Inline: owner})
	if err != nil {
		t.Fatal(err)
	}
	s.start()
	await(t, "the inventory", func() bool {
		items := s.inventory()
		return len(items) == 1 && items[0].Inline != nil &&
			string(items[0].Inline.PodUID) == owner.PodUID && items[0].Inline.Name == owner.Name
	})
	if n := s.storageNode(); len(n.Status.Conditions) != 1 {
		t.Errorf("the inline volume shows as an orphan: %+v", n.Status.Conditions)
	}
}

// shelf is a node with more disks than a report has place for.
type shelf struct{ poold.Node }

func (n shelf) Report(ctx context.Context) ([]provision.Pool, error) {
	pools, err := n.Node.Report(ctx)
	for i := range 300 {
		ref := provision.PoolRef{Type: provision.Device, Name: fmt.Sprintf("%swwn-%d", provision.DiskPrefix, i)}
		pools = append(pools, provision.Pool{PoolRef: ref, Total: gib, Free: gib, Unit: gib, Media: provision.MediaHDD, Paths: []string{fmt.Sprintf("/dev/sd%d", i)}})
	}
	return pools, err
}

func TestANodeWithMorePoolsThanAReportHasPlaceForIsReported(t *testing.T) {
	s := newSite(t, "")
	s.node = shelf{s.node}
	pc, sc := s.classes()
	disks := pc.DeepCopy()
	disks.Name += "-disks"
	disks.Spec = v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerDevice, Devices: &v1alpha1.DevicePools{Paths: []string{"/dev/sd*"}}}
	s.create(pc, sc, disks, s.volume("a"))
	defer s.finish("a")
	s.start()
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	await(t, "the capacity", func() bool { return s.capacity() == "9Gi" })
	n := s.storageNode()
	if len(n.Status.Pools) != 256 || meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionPoolsLeftOut) == nil {
		t.Errorf("%d pools are reported, conditions %+v", len(n.Status.Pools), n.Status.Conditions)
	}
	if !slices.ContainsFunc(n.Status.Pools, func(p v1alpha1.Pool) bool { return p.Name == s.pool.Name }) {
		t.Error("the pool with the volume is left out")
	}
}
