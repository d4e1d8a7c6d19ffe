package controller_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/provision"
)

func TestNoVolumeIsMadeWhileANodeKeepsDataOfItsName(t *testing.T) {
	c := newCluster(t)
	keeps, n := c.node(t, "keeps", 10*gi), c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(n)
	name := v1alpha1.VolumeName(r.Name)
	c.lists(t, p, keeps, ledger.Volume(name), func(i *v1alpha1.InventoryItem) { i.Volume = name })
	for _, reservation := range []bool{true, false} {
		r.Reservation = reservation
		_, err := p.Volumes.Create(within(t), r)
		wantError(t, err, provision.ErrConflict, "node "+keeps.Name, "pool "+controllertest.Pool, "kubectl berth adopt "+keeps.Name+" "+name)
	}
}

func TestNoSnapshotIsTakenWhileAnotherNodeKeepsOneOfItsName(t *testing.T) {
	c := newCluster(t)
	keeps, n := c.node(t, "keeps", 10*gi), c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := snapshotOf(mustCreate(t, p, c.request(n)).ID)
	name := v1alpha1.SnapshotName(r.Name)
	c.lists(t, p, keeps, ledger.VolumeSnapshot(name), func(i *v1alpha1.InventoryItem) { i.Snapshot = name })
	_, err := p.Snapshots.Create(within(t), r)
	wantError(t, err, provision.ErrConflict, "node "+keeps.Name, "pool "+controllertest.Pool, "kubectl berth adopt "+keeps.Name+" "+name)
	if _, taken := n.Taken(name); taken || controllertest.Snapshot(t, c.Environment, name) != nil {
		t.Error("it was taken anew")
	}
}

// lists makes a node report an orphan, and waits until the ledger knows it.
func (c *cluster) lists(t *testing.T, p *controllertest.Process, n *controllertest.Node, owner ledger.Owner, name func(*v1alpha1.InventoryItem)) {
	t.Helper()
	report := &v1alpha1.StorageNode{}
	if err := c.Client.Get(t.Context(), client.ObjectKey{Name: n.Name}, report); err != nil {
		t.Fatal(err)
	}
	size := resource.MustParse("1Gi")
	item := v1alpha1.InventoryItem{Allocated: size, Orphan: &v1alpha1.Orphan{Since: metav1.Unix(1, 0), Reason: v1alpha1.OrphanNoObject, Size: size}}
	name(&item)
	report.Status.Pools[0].Inventory = []v1alpha1.InventoryItem{item}
	if err := c.Client.Status().Update(t.Context(), report); err != nil {
		t.Fatal(err)
	}
	await(t, "the ledger", func() bool { _, _, found := p.Book.Orphan(owner); return found })
}

func TestAReservationOfAnotherShapeMakesWay(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	r := c.request(n)
	r.Reservation = true
	mustCreate(t, p, r)
	r.Reservation, r.FSType = false, v1alpha1.XFS
	made := mustCreate(t, p, r)
	if v := controllertest.Volume(t, c.Environment, made.ID); v.Reserved() || v.Spec.FSType != v1alpha1.XFS {
		t.Errorf("volume %+v", v.Spec)
	}
}
