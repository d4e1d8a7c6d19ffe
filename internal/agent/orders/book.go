package orders

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/provision/shared/ordered"
	"berth.dev/berth/internal/record"
)

// Book has the orders of one node at the API server.
type Book struct {
	Node string
	// Live reads from no cache, and Status writes.
	Live   client.Reader
	Status client.StatusClient
	Clock  clock.PassiveClock
	// FreshID returns an id that no order has had.
	FreshID func() string
}

var _ ordered.Book = Book{}

// Read implements ordered.Book. ErrConflict: the disk is ordered for another volume.
func (b Book) Read(ctx context.Context, d shared.Disk) (ownership.Order, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	n, err := b.storageNode(ctx)
	if err != nil {
		return ownership.Order{}, false, err
	}
	return find(n, d)
}

// Place implements ordered.Book.
func (b Book) Place(ctx context.Context, d shared.Disk, wish ownership.Wish) error {
	ctx, cancel := context.WithTimeout(ctx, orphans.RequestTimeout)
	defer cancel()
	next := record.OrderInto(d.Handle, d.Volume, ownership.Order{ID: b.FreshID(), Wish: wish, Since: b.Clock.Now()})
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n, err := b.storageNode(ctx)
		if err != nil {
			return err
		}
		if _, _, err := find(n, d); err != nil {
			return err
		}
		before := n.DeepCopy()
		if old := n.DiskOrder(d.Handle); old != nil {
			*old = next
		} else {
			n.Status.DiskOrders = append(n.Status.DiskOrders, next)
		}
		// Only what was read is replaced: a controller's answer to the last order, or another order, may have come.
		return b.Status.Status().Patch(ctx, n, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("ordering the disk of volume %s: %w", d.Volume, err)
	}
	return nil
}

func (b Book) storageNode(ctx context.Context) (*v1alpha1.StorageNode, error) {
	n := &v1alpha1.StorageNode{}
	err := b.Live.Get(ctx, client.ObjectKey{Name: b.Node}, n)
	if apierrors.IsNotFound(err) {
		return nil, provision.Unavailable(fmt.Errorf("there is no StorageNode %s, which has the orders of its node: the agent of pools makes it", b.Node))
	}
	return n, err
}

// find finds the order about a disk, which must be for its volume.
func find(n *v1alpha1.StorageNode, d shared.Disk) (ownership.Order, bool, error) {
	o := n.DiskOrder(d.Handle)
	switch {
	case o == nil:
		return ownership.Order{}, false, nil
	case o.Volume != d.Volume:
		return ownership.Order{}, false, fmt.Errorf("%w: volume %s and volume %s name one disk, %q, which this node has ordered for %s",
			provision.ErrConflict, d.Volume, o.Volume, d.Handle, o.Volume)
	}
	order, err := record.OrderFrom(o)
	return order, err == nil, err
}

// Changed returns the volumes whose orders differ between two states of a StorageNode, either of which may be nil.
func Changed(before, after *v1alpha1.StorageNode) (volumes []string) {
	for _, pair := range [][2]*v1alpha1.StorageNode{{before, after}, {after, before}} {
		if pair[0] == nil {
			continue
		}
		for _, o := range pair[0].Status.DiskOrders {
			var other *v1alpha1.DiskOrder
			if pair[1] != nil {
				other = pair[1].DiskOrder(o.Handle)
			}
			if other == nil || other.ID != o.ID || other.State != o.State {
				volumes = append(volumes, o.Volume)
			}
		}
	}
	slices.Sort(volumes)
	return slices.Compact(volumes)
}
