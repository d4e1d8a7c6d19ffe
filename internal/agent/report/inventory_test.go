package report

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// holding puts volumes of a GiB each into a pool.
func holding(ids ...string) poolOption {
	return func(p *provision.Pool) {
		for _, id := range ids {
			p.Volumes = append(p.Volumes, provision.Volume{ID: id, Pool: p.PoolRef, Size: gib})
			p.Free -= gib
		}
	}
}

// keeping puts snapshots of a GiB each into a pool.
func keeping(ids ...string) poolOption {
	return func(p *provision.Pool) {
		for _, id := range ids {
			p.Snapshots = append(p.Snapshots, provision.Snapshot{ID: id, Volume: "pvc-1", Pool: p.PoolRef, Size: 2 * gib, Allocated: gib})
			p.Free -= gib
		}
	}
}

// ownedInline makes the pool's last volume the inline volume of a pod.
func ownedInline(pod, name string) poolOption {
	return func(p *provision.Pool) {
		p.Volumes[len(p.Volumes)-1].Inline = provision.Inline{PodUID: pod, Name: name}
	}
}

// onNode is a Volume that is to have a replica on node n1, with its entries.
func onNode(name, pool string, entries ...v1alpha1.ReplicaStatus) v1alpha1.Volume {
	v := v1alpha1.Volume{}
	v.Name = name
	if pool != "" {
		v.Spec.Replicas = []v1alpha1.ReplicaSpec{{Node: "n1", Pool: pool}}
	}
	v.Status.Replicas = entries
	return v
}

func saying(node, pool string, state v1alpha1.ReplicaState) v1alpha1.ReplicaStatus {
	return v1alpha1.ReplicaStatus{Node: node, Pool: pool, State: state}
}

func TestTheInventoryListsDataThatNoVolumeAccountsFor(t *testing.T) {
	for name, tc := range map[string]struct {
		volumes []v1alpha1.Volume
		pool    provision.Pool
		want    []string
	}{
		"an empty pool": {pool: pool("vg0")},
		"an object wants the volume in this pool": {[]v1alpha1.Volume{onNode("pvc-1", "vg0")}, pool("vg0", holding("pvc-1")), nil},
		"no object knows the volume":              {nil, pool("vg0", holding("pvc-1")), []string{"pvc-1 1Gi"}},
		"an object wants the volume in another pool": {
			[]v1alpha1.Volume{onNode("pvc-1", "vg1")}, pool("vg0", holding("pvc-1")), []string{"pvc-1 1Gi"}},
		"an object reports the volume but wants no copy any more": {
			[]v1alpha1.Volume{onNode("pvc-1", "", saying("n1", "vg0", v1alpha1.ReplicaReady))}, pool("vg0", holding("pvc-1")), nil},
		"an object reports that the volume is gone": {
			[]v1alpha1.Volume{onNode("pvc-1", "", saying("n1", "vg0", v1alpha1.ReplicaGone))}, pool("vg0", holding("pvc-1")), []string{"pvc-1 1Gi"}},
		"an object reports the volume on another node": {
			[]v1alpha1.Volume{onNode("pvc-1", "", saying("n2", "vg0", v1alpha1.ReplicaReady))}, pool("vg0", holding("pvc-1")), []string{"pvc-1 1Gi"}},
		"an inline volume": {
			nil, pool("vg0", holding("inline-1"), ownedInline("uid", "scratch")), []string{"scratch of uid 1Gi"}},
		"a snapshot of a volume": {
			[]v1alpha1.Volume{onNode("pvc-1", "vg0")}, pool("vg0", holding("pvc-1"), keeping("snap-1")), []string{"snap-1 1Gi"}},
		"a snapshot whose volume is gone": {
			nil, pool("vg0", keeping("snap-1")), []string{"snap-1 1Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			items, rest := Facts{Accounted: accountedFor(tc.volumes, "n1")}.inventory(tc.pool)
			var lines []string
			for _, i := range items {
				line := i.Volume + i.Snapshot
				if i.Inline != nil {
					line = fmt.Sprintf("%s of %s", i.Inline.Name, i.Inline.PodUID)
				}
				lines = append(lines, line+" "+i.Allocated.String())
			}
			if diff := cmp.Diff(tc.want, lines); diff != "" || rest != 0 {
				t.Errorf("%s rest %d", diff, rest)
			}
		})
	}
}

func TestDataBeyondTheLimitOfTheInventoryCountsAsForeign(t *testing.T) {
	p := pool("vg0")
	for i := range maxInventory + 3 {
		holding(fmt.Sprint("pvc-", i))(&p)
	}
	keeping("snap-1", "snap-2")(&p)
	p.Foreign = gib
	got := Describe(facts([]v1alpha1.PoolClass{class("fast", []string{"vg0"})}), seen(p)).Pools[0]
	if n := len(got.Inventory); n != maxInventory {
		t.Errorf("%d items, want %d", n, maxInventory)
	}
	if got.Foreign.Value() != 6*gib {
		t.Errorf("foreign %s, want what others use, and the three volumes and two snapshots that are not listed", got.Foreign.String())
	}
}

func TestAPoolOfNoClassIsReportedWhileSomethingOfBerthsIsInIt(t *testing.T) {
	got := Describe(facts(nil), seen(pool("vg0", holding("inline-1"), ownedInline("uid", "scratch"))))
	if len(got.Pools) != 1 || len(got.Pools[0].Inventory) != 1 {
		t.Errorf("pools %+v", got.Pools)
	}
}
