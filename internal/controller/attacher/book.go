package attacher

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/shared"
	"berth.dev/berth/internal/record"
)

// requestLimit is how long one request to the API server may take.
const requestLimit = 10 * time.Second

// Objects is the Book of the API server. Orders are in the status of StorageNodes.
type Objects struct {
	// Cached may be old, Live is not, and Status writes.
	Cached, Live client.Reader
	Status       client.StatusClient
	// Scheme of the handles that the cloud serves. Other orders are none for it.
	Scheme string
	Clock  clock.PassiveClock
}

var _ Book = Objects{}

// Orders implements Book. An attach that no volume of the node accounts for is refused, and left out: a node cannot
// have disks attached to its machine that are none of its business.
func (b Objects) Orders(ctx context.Context, node string) (orders []Order, err error) {
	n := &v1alpha1.StorageNode{}
	if err := b.Cached.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	for i := range n.Status.DiskOrders {
		o := &n.Status.DiskOrders[i]
		if !shared.HasScheme(o.Handle, b.Scheme) {
			continue
		}
		order, err := record.OrderFrom(o)
		if err != nil {
			return nil, err
		}
		next := Order{Disk: shared.Disk{Volume: o.Volume, Handle: o.Handle}, Order: order}
		if order.Wish == ownership.ToAttach && order.State == ownership.Placed {
			disk, problem, err := b.entitled(ctx, node, o)
			if err != nil {
				return nil, err
			}
			if problem != "" {
				if err := b.Answer(ctx, node, next, ownership.Refused, problem, false); err != nil {
					return nil, err
				}
				continue
			}
			next.Disk = disk
		}
		orders = append(orders, next)
	}
	return orders, nil
}

// entitled returns the disk that a node may have attached, by the word of a Volume's record or of a LUN that the
// node wipes; else the problem. What the cache does not say, the API server is asked for.
func (b Objects) entitled(ctx context.Context, node string, o *v1alpha1.DiskOrder) (d shared.Disk, problem string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	for _, from := range []client.Reader{b.Cached, b.Live} {
		v, luns := &v1alpha1.Volume{}, &v1alpha1.LUNList{}
		if err := from.Get(ctx, client.ObjectKey{Name: o.Volume}, v); apierrors.IsNotFound(err) {
			v = nil
		} else if err != nil {
			return shared.Disk{}, "", fmt.Errorf("reading volume %s: %w", o.Volume, err)
		}
		if d, is := Entitled(node, o.Handle, v, nil); is {
			return d, "", nil
		}
		if err := from.List(ctx, luns); err != nil {
			return shared.Disk{}, "", fmt.Errorf("listing LUNs: %w", err)
		}
		if d, is := Entitled(node, o.Handle, nil, luns.Items); is {
			d.Volume = o.Volume
			return d, "", nil
		}
	}
	return shared.Disk{}, fmt.Sprintf("the record of volume %s has no attachment of node %s, or names another disk", o.Volume, node), nil
}

// Entitled says whether a disk may be attached to the machine of a node: it is the one of a volume whose record
// counts the node, or of a LUN that the node is to wipe.
func Entitled(node, handle string, v *v1alpha1.Volume, luns []v1alpha1.LUN) (shared.Disk, bool) {
	if v != nil && v.Spec.Replication.Attachments != nil {
		a, r := v.Spec.Replication.Attachments, v.Status.Ownership
		counts := v.Wish(node) != nil || r != nil && (r.Primary.Node == node ||
			slices.ContainsFunc(r.Replicas, func(e v1alpha1.OwnedReplica) bool { return e.Node == node }))
		if counts && a.Disk != nil && a.Disk.Handle == handle {
			return shared.Disk{Volume: v.Name, Handle: handle, Identity: provision.Identity(a.Disk.Identity), Persistent: a.Persistent,
				ManyWriters: v.Spec.Sharing == v1alpha1.Shared}, true
		}
	}
	for i := range luns {
		if l := &luns[i]; l.Spec.Disk.Handle == handle && l.Status.Wipe != nil && l.Status.Wipe.Node == node {
			return shared.Disk{Handle: handle, Identity: provision.Identity(l.Spec.Disk.Identity), Persistent: l.Spec.Persistent}, true
		}
	}
	return shared.Disk{}, false
}

// Still implements Book.
func (b Objects) Still(ctx context.Context, node string, o Order) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	n := &v1alpha1.StorageNode{}
	if err := b.Live.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	now := n.DiskOrder(o.Disk.Handle)
	return now != nil && now.ID == o.ID, nil
}

// Answer implements Book.
func (b Objects) Answer(ctx context.Context, node string, o Order, state ownership.OrderState, problem string, done bool) error {
	ctx, cancel := context.WithTimeout(ctx, requestLimit)
	defer cancel()
	answer := o.Order
	answer.State, answer.Problem, answer.Since = state, problem, b.Clock.Now()
	next := record.OrderInto(o.Disk.Handle, o.Disk.Volume, answer)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n := &v1alpha1.StorageNode{}
		if err := b.Live.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
			return client.IgnoreNotFound(err)
		}
		now := n.DiskOrder(next.Handle)
		if now == nil || now.ID != next.ID || !done && now.State == next.State {
			return nil
		}
		before := n.DeepCopy()
		if *now = next; done {
			n.Status.DiskOrders = slices.DeleteFunc(n.Status.DiskOrders, func(o v1alpha1.DiskOrder) bool { return o.Handle == next.Handle })
		}
		return b.Status.Status().Patch(ctx, n, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	})
	if err != nil {
		return fmt.Errorf("answering the order of node %s for the disk of volume %s: %w", node, o.Disk.Volume, err)
	}
	return nil
}
