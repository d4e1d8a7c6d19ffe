package notice

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

const day = 24 * 3600

// orphan is one since a second of the epoch, with a deadline if that is not 0.
func orphan(name string, since, deadline int64) v1alpha1.InventoryItem {
	o := &v1alpha1.Orphan{Since: metav1.Unix(since, 0), Reason: v1alpha1.OrphanNoObject, Message: "no object", Size: resource.MustParse("1Gi")}
	if deadline != 0 {
		o.Deadline = &metav1.Time{Time: time.Unix(deadline, 0)}
	}
	return v1alpha1.InventoryItem{Volume: name, Allocated: o.Size, Orphan: o}
}

func node(name string, items ...v1alpha1.InventoryItem) *v1alpha1.StorageNode {
	n := &v1alpha1.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}}
	some := resource.MustParse("10Gi")
	n.Status.Pools = []v1alpha1.Pool{{Name: "vg0", Provisioner: v1alpha1.ProvisionerLVM, Total: some, Foreign: some, AllocationUnit: some,
		LargestVolume: some, Health: v1alpha1.PoolHealthy, Inventory: items}}
	return n
}

func TestDue(t *testing.T) {
	for name, tc := range map[string]struct {
		items []v1alpha1.InventoryItem
		now   int64
		want  []string
		next  time.Duration
	}{
		"no orphan":                      {items: []v1alpha1.InventoryItem{{Volume: "pvc-1"}}},
		"a new orphan":                   {items: []v1alpha1.InventoryItem{orphan("pvc-1", 0, 0)}, now: 3599, want: []string{ReasonFound}},
		"an old orphan":                  {items: []v1alpha1.InventoryItem{orphan("pvc-1", 0, 0)}, now: 3600},
		"the clock of the node is ahead": {items: []v1alpha1.InventoryItem{orphan("pvc-1", 9999, 0)}, now: 5, want: []string{ReasonFound}},
		"a deadline that is far":         {items: []v1alpha1.InventoryItem{orphan("pvc-1", 0, 3*day)}, now: day, next: day * time.Second},
		"a deadline that is near":        {items: []v1alpha1.InventoryItem{orphan("pvc-1", 0, 3*day)}, now: 2 * day, want: []string{ReasonExpiring}},
		"a deadline that has passed":     {items: []v1alpha1.InventoryItem{orphan("pvc-1", 0, 3*day)}, now: 3 * day},
		"a new orphan with a deadline":   {items: []v1alpha1.InventoryItem{orphan("pvc-1", 0, day)}, now: 1, want: []string{ReasonFound, ReasonExpiring}},
		"the nearest of two deadlines":   {items: []v1alpha1.InventoryItem{orphan("pvc-1", 0, 5*day), orphan("pvc-2", 0, 4*day)}, now: day, next: 2 * day * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			notices, next := Due(node("n1", tc.items...), time.Unix(tc.now, 0))
			var reasons []string
			for _, n := range notices {
				reasons = append(reasons, n.Reason)
			}
			if diff := cmp.Diff(tc.want, reasons); diff != "" || next != tc.next {
				t.Errorf("%s next in %s, want %s", diff, next, tc.next)
			}
		})
	}
}

func TestEachNoticeHasAnEventNameOfItsOwn(t *testing.T) {
	names := map[string]string{}
	for what, n := range map[string]*v1alpha1.StorageNode{
		"one": node("n1", orphan("pvc-1", 0, day)), "another volume": node("n1", orphan("pvc-2", 0, day)),
		"another node": node("n2", orphan("pvc-1", 0, day)), "another time": node("n1", orphan("pvc-1", 1, day)),
	} {
		notices, _ := Due(n, time.Unix(10, 0))
		again, _ := Due(n, time.Unix(20, 0))
		if diff := cmp.Diff(notices, again); diff != "" {
			t.Error(diff)
		}
		for _, notice := range notices {
			if before, taken := names[notice.Name]; taken {
				t.Errorf("%s and %s have one name", before, what)
			}
			names[notice.Name] = what
		}
	}
	if len(names) != 8 {
		t.Errorf("%d names, want 8", len(names))
	}
}

func TestANoticeNamesTheOrphanAndTheWayOut(t *testing.T) {
	notices, _ := Due(node("n1", orphan("pvc-1", 0, day)), time.Unix(10, 0))
	for i, want := range []string{
		"pvc-1 in pool vg0 (1Gi) is kept: no object",
		"pvc-1 in pool vg0 (1Gi) is deleted at 1970-01-02T00:00:00Z unless it is adopted: kubectl berth adopt n1 pvc-1",
	} {
		if !strings.HasPrefix(notices[i].Message, want) {
			t.Errorf("%q, want %q", notices[i].Message, want)
		}
	}
}
