package record

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
)

// The words of orders, in the order of the rules' constants.
var (
	diskWishes  = []v1alpha1.DiskWish{v1alpha1.DiskAttach, v1alpha1.DiskDetach}
	orderStates = []v1alpha1.DiskOrderState{v1alpha1.DiskOrderPlaced, v1alpha1.DiskOrderAttached, v1alpha1.DiskOrderRefused}
)

// maxProblem is the bound of the schema for an order's problem, in characters.
const maxProblem = 1024

// OrderFrom returns an order of a node. A word that no rule writes is an error.
func OrderFrom(o *v1alpha1.DiskOrder) (ownership.Order, error) {
	r := &check{}
	out := ownership.Order{
		ID:    o.ID,
		Wish:  ownership.Wish(index(r, "wish", diskWishes, o.Wish)),
		State: ownership.OrderState(index(r, "state", orderStates, o.State)),
		Since: o.Since.Time, Problem: o.Problem,
	}
	r.that(o.ID != "", "the order has no id")
	if r.err != nil {
		return ownership.Order{}, fmt.Errorf("the order for the disk %q is malformed: %w", o.Handle, r.err)
	}
	return out, nil
}

// OrderInto returns an order about a disk as a node's StorageNode has it. A problem that is too long is cut off:
// it is for people.
func OrderInto(handle, volume string, o ownership.Order) v1alpha1.DiskOrder {
	problem := []rune(o.Problem)
	return v1alpha1.DiskOrder{
		Handle: handle, Volume: volume, ID: o.ID, Wish: diskWishes[o.Wish], State: orderStates[o.State],
		Since: metav1.NewTime(o.Since), Problem: string(problem[:min(len(problem), maxProblem)]),
	}
}
