package rules

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/apitest"
)

const oneOwner = "an item of the inventory is one of volume, inline and snapshot"

// lost is a volume whose Volume object is gone.
func lost(volume string) v1alpha1.InventoryItem {
	return v1alpha1.InventoryItem{Volume: volume, Allocated: resource.MustParse("1Gi")}
}

func inline(pod types.UID, name string) v1alpha1.InventoryItem {
	return v1alpha1.InventoryItem{
		Inline: &v1alpha1.InlineReference{PodUID: pod, Name: name}, Allocated: resource.MustParse("1Gi"),
	}
}

func inventory(items ...v1alpha1.InventoryItem) func(*v1alpha1.StorageNodeStatus) {
	return func(s *v1alpha1.StorageNodeStatus) { s.Pools[0].Inventory = items }
}

func lostVolumes(n int) []v1alpha1.InventoryItem {
	items := make([]v1alpha1.InventoryItem, n)
	for i := range items {
		items[i] = lost(fmt.Sprintf("vol-%d", i))
	}
	return items
}

func withBoth() v1alpha1.InventoryItem {
	item := inline("uid", "scratch")
	item.Volume = "vol-lost"
	return item
}

func revision(r string) func(*v1alpha1.StorageNodeStatus) {
	return func(s *v1alpha1.StorageNodeStatus) { s.VolumesRevision = r }
}

func features(names ...string) func(*v1alpha1.StorageNodeStatus) {
	return func(s *v1alpha1.StorageNodeStatus) { s.Features = names }
}

func message(length int) func(*v1alpha1.StorageNodeStatus) {
	return func(s *v1alpha1.StorageNodeStatus) { s.Pools[0].Message = strings.Repeat("x", length) }
}

func lastChange(r v1alpha1.PoolChangeReason, message int) func(*v1alpha1.StorageNodeStatus) {
	return func(s *v1alpha1.StorageNodeStatus) {
		s.Pools[0].LastChange = &v1alpha1.PoolChange{At: metav1.Unix(1, 0), Reason: r, Message: strings.Repeat("x", message)}
	}
}

func pools(n int) func(*v1alpha1.StorageNodeStatus) {
	return func(s *v1alpha1.StorageNodeStatus) {
		for i := range n - 1 {
			p := s.Pools[0]
			p.Name = fmt.Sprintf("vg-%d", i)
			s.Pools = append(s.Pools, p)
		}
	}
}

func classesOf(n int) func(*v1alpha1.StorageNodeStatus) {
	return func(s *v1alpha1.StorageNodeStatus) {
		for i := range n {
			s.Pools[0].Classes = append(s.Pools[0].Classes, fmt.Sprintf("class-%d", i))
		}
	}
}

// reportCases are reports on one pool.
var reportCases = map[string]struct {
	edit    func(*v1alpha1.StorageNodeStatus)
	refusal string
}{
	"a report":                                 {edit: func(*v1alpha1.StorageNodeStatus) {}},
	"an empty report":                          {edit: func(s *v1alpha1.StorageNodeStatus) { s.Pools = nil }},
	"a pool reported twice":                    {edit: func(s *v1alpha1.StorageNodeStatus) { s.Pools = append(s.Pools, s.Pools[0]) }, refusal: "Duplicate value"},
	"the largest number of pools":              {edit: pools(256)},
	"too many pools":                           {edit: pools(257), refusal: "status.pools"},
	"the largest number of classes":            {edit: classesOf(64)},
	"too many classes":                         {edit: classesOf(65), refusal: "status.pools[0].classes"},
	"a pool with an unknown health":            {edit: func(s *v1alpha1.StorageNodeStatus) { s.Pools[0].Health = "Fine" }, refusal: `Unsupported value: "Fine"`},
	"the longest message":                      {edit: message(1024)},
	"a message that is too long":               {edit: message(1025), refusal: "may not be more than 1024 bytes"},
	"a revision":                               {edit: revision("18446744073709551615")},
	"a revision of zero":                       {edit: revision("0"), refusal: "status.volumesRevision"},
	"a revision that is a word":                {edit: revision("latest"), refusal: "status.volumesRevision"},
	"a feature of a later version":             {edit: features("Flight")},
	"a feature twice":                          {edit: features("Copies", "Copies"), refusal: "status.features"},
	"a feature with a long name":               {edit: features(strings.Repeat("x", 64)), refusal: "status.features"},
	"an inventory":                             {edit: inventory(lost("vol-lost"), inline("uid", "scratch"))},
	"a full inventory":                         {edit: inventory(lostVolumes(256)...)},
	"an inventory that is too long":            {edit: inventory(lostVolumes(257)...), refusal: "status.pools[0].inventory"},
	"an item without owner":                    {edit: inventory(lost("")), refusal: oneOwner},
	"a snapshot":                               {edit: inventory(v1alpha1.InventoryItem{Snapshot: "snap-1", Allocated: resource.MustParse("1Gi")})},
	"an item with two owners":                  {edit: inventory(withBoth()), refusal: oneOwner},
	"an inline volume without a pod":           {edit: inventory(inline("", "scratch")), refusal: "podUID"},
	"an inline volume without a name":          {edit: inventory(inline("uid", "")), refusal: "inline.name"},
	"a pool that was made":                     {edit: lastChange(v1alpha1.PoolMade, 1024)},
	"an unknown change of a pool":              {edit: lastChange("Lost", 1), refusal: `Unsupported value: "Lost"`},
	"a change with a message that is too long": {edit: lastChange(v1alpha1.PoolGrown, 1025), refusal: "lastChange.message"},
}

func TestAStorageNodesReportIsBounded(t *testing.T) {
	env := apitest.Start(t)
	some := resource.MustParse("1Gi")
	pool := v1alpha1.Pool{Name: "vg", Provisioner: v1alpha1.ProvisionerLVM, Total: some, Foreign: some,
		AllocationUnit: some, LargestVolume: some, Health: v1alpha1.PoolHealthy}
	for name, tc := range reportCases {
		t.Run(name, func(t *testing.T) {
			n := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.VolumeName(t.Name())}}
			if err := env.Client.Create(t.Context(), n); err != nil {
				t.Fatal(err)
			}
			n.Status.Pools = []v1alpha1.Pool{pool}
			tc.edit(&n.Status)
			expect(t, env.Client.Status().Update(t.Context(), n), tc.refusal)
		})
	}
}
