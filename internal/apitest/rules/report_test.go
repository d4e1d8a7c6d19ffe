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
	"a report":                      {edit: func(*v1alpha1.StorageNodeStatus) {}},
	"an empty report":               {edit: func(s *v1alpha1.StorageNodeStatus) { s.Pools = nil }},
	"one pool reported twice":       {edit: func(s *v1alpha1.StorageNodeStatus) { s.Pools = append(s.Pools, s.Pools[0]) }, refusal: "Duplicate value"},
	"as many pools as there can be": {edit: pools(256)},
	"pools without end":             {edit: pools(257), refusal: "status.pools"},
	"as many classes as can be":     {edit: classesOf(64)},
	"classes without end":           {edit: classesOf(65), refusal: "status.pools[0].classes"},
	"a pool in no known health":     {edit: func(s *v1alpha1.StorageNodeStatus) { s.Pools[0].Health = "Fine" }, refusal: `Unsupported value: "Fine"`},
	"a message":                     {edit: message(1024)},
	"a message without end":         {edit: message(1025), refusal: "may not be more than 1024 bytes"},
	"a revision":                    {edit: revision("18446744073709551615")},
	"a revision of nothing":         {edit: revision("0"), refusal: "status.volumesRevision"},
	"a revision that is a word":     {edit: revision("latest"), refusal: "status.volumesRevision"},
	"a feature that is yet to come": {edit: features("Flight")},
	"a feature twice":               {edit: features("Copies", "Copies"), refusal: "status.features"},
	"a feature of too many words":   {edit: features(strings.Repeat("x", 64)), refusal: "status.features"},
	"an inventory":                  {edit: inventory(lost("vol-lost"), inline("uid", "scratch"))},
	"a full inventory":              {edit: inventory(lostVolumes(256)...)},
	"an inventory without end":      {edit: inventory(lostVolumes(257)...), refusal: "status.pools[0].inventory"},
	"an item without owner":         {edit: inventory(lost("")), refusal: oneOwner},
	"a snapshot":                    {edit: inventory(v1alpha1.InventoryItem{Snapshot: "snap-1", Allocated: resource.MustParse("1Gi")})},
	"an item with two owners":       {edit: inventory(withBoth()), refusal: oneOwner},
	"an inline volume of no pod":    {edit: inventory(inline("", "scratch")), refusal: "podUID"},
	"an inline volume of no name":   {edit: inventory(inline("uid", "")), refusal: "inline.name"},
	"a pool that was made":          {edit: lastChange(v1alpha1.PoolMade, 1024)},
	"a pool that was lost":          {edit: lastChange("Lost", 1), refusal: `Unsupported value: "Lost"`},
	"a change without end":          {edit: lastChange(v1alpha1.PoolGrown, 1025), refusal: "lastChange.message"},
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
