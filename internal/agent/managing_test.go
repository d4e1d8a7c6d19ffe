package agent

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/wish"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

// plug puts an empty disk of 10 GiB into the site's node.
func (s *site) plug(name string) {
	s.disks.AddPool(memory.PoolConfig{
		PoolRef: provision.PoolRef{Type: provision.Device, Name: provision.DiskPrefix + name}, Total: 10 * gib, Unit: 10 * gib,
		Media: provision.MediaSSD, Paths: []string{"/dev/" + name},
	})
}

// made is the volume group that Berth makes for the site's class.
func (s *site) made() provision.PoolRef {
	return provision.PoolRef{Type: provision.LVM, Name: "made-" + s.name}
}

// creating is a class that asks for a volume group of all disks, with a thin pool in it.
func (s *site) creating() *v1alpha1.PoolClass {
	return &v1alpha1.PoolClass{
		ObjectMeta: metav1.ObjectMeta{Name: "made-" + s.name},
		Spec: v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerLVMThin, LVMThin: &v1alpha1.LVMThinPools{
			ThinPools:  []string{s.made().Name + "/thin"},
			Create:     &v1alpha1.ThinPoolCreation{Disks: &v1alpha1.DevicePools{Paths: []string{"/dev/sd*"}}, SizePercent: 50},
			AutoExtend: &v1alpha1.ThinPoolExtension{AtPercent: 80, ByPercent: 20},
		}},
	}
}

// thin is the thin pool as reported; nil if it is not reported.
func (s *site) thin() *v1alpha1.Pool {
	s.t.Helper()
	if n := s.storageNode(); n != nil {
		for i, p := range n.Status.Pools {
			if p.Name == s.made().Name+"/thin" {
				return &n.Status.Pools[i]
			}
		}
	}
	return nil
}

// stands says whether the condition PoolsManaged has that status and reason.
func (s *site) stands(status metav1.ConditionStatus, reason provision.Reason) func() bool {
	return func() bool {
		n := s.storageNode()
		if n == nil {
			return false
		}
		c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionPoolsManaged)
		return c != nil && c.Status == status && c.Reason == string(reason)
	}
}

// changed says whether the thin pool has at least that size, changed last for that reason.
func (s *site) changed(bytes int64, reason v1alpha1.PoolChangeReason) func() bool {
	return func() bool {
		p := s.thin()
		return p != nil && p.Health == v1alpha1.PoolHealthy && p.Total.Value() >= bytes && p.LastChange != nil && p.LastChange.Reason == reason
	}
}

func TestPoolsAreMadeOfDisksAsTheyComeAndExtendedAsTheyFill(t *testing.T) {
	s := newSite(t, "")
	s.create(s.creating())
	s.start()
	await(t, "disks to be awaited", s.stands(metav1.ConditionFalse, provision.PoolAwaitsDisks))
	s.plug("sda")
	await(t, "the pool", s.changed(4*gib, v1alpha1.PoolMade))
	await(t, "all as asked", s.stands(metav1.ConditionTrue, provision.PoolAsAsked))
	s.plug("sdb")
	await(t, "the pool to have its share", s.changed(9*gib, v1alpha1.PoolGrown))
	s.disks.SetFillPercent(provision.PoolRef{Type: provision.LVMThin, Name: s.made().Name + "/thin"}, 85, 10)
	await(t, "the pool to be extended", s.changed(11*gib, v1alpha1.PoolExtended))
}

func TestAPoolThatIsGoneIsMadeAnewOnlyWhenItsReportIsDeleted(t *testing.T) {
	s := newSite(t, "")
	s.create(s.creating())
	s.plug("sda")
	first := s.start()
	await(t, "the pool", s.changed(4*gib, v1alpha1.PoolMade))
	first.stop()
	s.disks.RemovePool(s.made())
	s.disks.RemovePool(provision.PoolRef{Type: provision.LVMThin, Name: s.made().Name + "/thin"})
	s.plug("sdb")
	s.start()
	await(t, "the pool to be missed", s.stands(metav1.ConditionFalse, wish.Missing))
	if p := s.thin(); p == nil || p.Health != v1alpha1.PoolMissing {
		t.Errorf("listed is %+v", p)
	}
	if err := s.Client.Delete(t.Context(), s.storageNode()); err != nil {
		t.Fatal(err)
	}
	await(t, "the pool to be made anew", s.changed(4*gib, v1alpha1.PoolMade))
}

// grouping is a class that asks for a volume group of all disks.
func (s *site) grouping() *v1alpha1.PoolClass {
	c := s.creating()
	c.Spec = v1alpha1.PoolClassSpec{Provisioner: v1alpha1.ProvisionerLVM, LVM: &v1alpha1.LVMPools{
		VolumeGroups: []string{s.made().Name}, Create: &v1alpha1.GroupCreation{Disks: v1alpha1.DevicePools{Paths: []string{"/dev/sd*"}}},
	}}
	return c
}

// grouped is a site whose agent has made the volume group of that class.
func grouped(t *testing.T) (*site, *v1alpha1.PoolClass, *agent) {
	t.Helper()
	s := newSite(t, "")
	c := s.grouping()
	s.plug("sda")
	s.create(c)
	first := s.start()
	await(t, "the group", s.stands(metav1.ConditionTrue, provision.PoolAsAsked))
	return s, c, first
}

// loseGroup takes the group and the node's report away, and starts an agent that could make the
// group anew. It returns once the agent misses the group.
func (s *site) loseGroup() {
	s.t.Helper()
	s.disks.RemovePool(s.made())
	if err := s.Client.Delete(s.t.Context(), s.storageNode()); err != nil {
		s.t.Fatal(err)
	}
	s.plug("sdb")
	s.start()
	await(s.t, "the group to be missed", s.stands(metav1.ConditionFalse, wish.Missing))
}

func TestAPoolThatVolumesAreInIsNotMadeAnewThoughNoReportListsIt(t *testing.T) {
	s, c, first := grouped(t)
	s.create(s.volume("a", func(v *v1alpha1.Volume) {
		v.Spec.PoolClass, v.Spec.Replicas = c.Name, []v1alpha1.ReplicaSpec{{Node: s.name, Pool: s.made().Name}}
	}))
	await(t, "the replica to be ready", s.says("a", isReady, v1alpha1.ReasonCarved))
	first.stop()
	s.loseGroup()
	s.finish("a")
}
