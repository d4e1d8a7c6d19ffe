package orders

import (
	"slices"
	"testing"

	"berth.dev/berth/api/v1alpha1"
)

func with(orders ...v1alpha1.DiskOrder) *v1alpha1.StorageNode {
	return &v1alpha1.StorageNode{Status: v1alpha1.StorageNodeStatus{DiskOrders: orders}}
}

func TestTheVolumesWhoseOrdersHaveChangedAreTold(t *testing.T) {
	placed := v1alpha1.DiskOrder{Handle: "simcloud:///one", Volume: "one", ID: "1", State: v1alpha1.DiskOrderPlaced}
	answered, anew := placed, placed
	answered.State, anew.ID = v1alpha1.DiskOrderAttached, "2"
	other := v1alpha1.DiskOrder{Handle: "simcloud:///two", Volume: "two", ID: "3", State: v1alpha1.DiskOrderPlaced}
	for name, tc := range map[string]struct {
		before, after *v1alpha1.StorageNode
		want          []string
	}{
		"the first look":        {nil, with(placed, other), []string{"one", "two"}},
		"an answer":             {with(placed, other), with(answered, other), []string{"one"}},
		"another order":         {with(answered), with(anew), []string{"one"}},
		"an order that is gone": {with(placed, other), with(placed), []string{"two"}},
		"a deleted StorageNode": {with(placed), nil, []string{"one"}},
		"nothing":               {with(placed, other), with(other, placed), nil},
	} {
		if got := Changed(tc.before, tc.after); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
