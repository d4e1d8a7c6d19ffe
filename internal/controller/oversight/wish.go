package oversight

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/record"
	"berth.dev/berth/internal/usecase"
)

// Wishes are what callers without a pod wish of the volumes that a Reconciler oversees.
type Wishes struct{ *Reconciler }

// Publish makes the wish that a pod makes which is bound to a node, and returns when the record has the
// attachment: the node's agent attaches the disk then. It lets no writer in. The rules decide as they do about the
// pod, no matter which asks first. The errors are of these classes:
//
//	provision.ErrNotFound    there is no such volume, or no such storage node
//	provision.ErrInUse       another node may write the volume; the message names it
//	usecase.ErrUnplaceable   the disk has no free share, or the node no free slot
//	usecase.ErrBusy          the volume is being deleted, or changes all the time
func (r Wishes) Publish(ctx context.Context, volume, node string) error {
	if err := r.Client.Get(ctx, types.NamespacedName{Name: node}, &v1alpha1.StorageNode{}, client.UnsafeDisableDeepCopy); err != nil {
		return absent(err, "node %s is none of Berth's storage nodes", node)
	}
	for range steps {
		if err := r.Client.Get(ctx, types.NamespacedName{Name: volume}, &v1alpha1.Volume{}, client.UnsafeDisableDeepCopy); err != nil {
			return absent(err, "there is no volume %s", volume)
		}
		if v, err := r.recorded(ctx, volume); err == nil { // nodes that are away would be asked, and keep it waiting
			if is, err := published(v, volume, node); is || err != nil {
				return err
			}
		}
		q, a, err := r.decide(ctx, question{name: volume, wish: node})
		if record.IsAbsent(err) {
			if _, err = begin(ctx, r.Reconciler, volume); err == nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("publishing volume %s to node %s: %w", volume, node, err)
		}
		if is, err := published(q.facts.Record, volume, node); is || err != nil {
			return err
		}
		if _, _, err := r.carryOut(ctx, q, a); err != nil {
			return fmt.Errorf("publishing volume %s to node %s: %w", volume, node, err)
		}
		if a.Reason == ownership.NoFreeShare || a.Reason == ownership.NoFreeSlot {
			return usecase.Fail(usecase.ErrUnplaceable, "%s", a.Message())
		}
	}
	return usecase.Fail(usecase.ErrBusy, "the record of volume %s changes all the time", volume)
}

// published tells whether the record has the attachment. The error says that it cannot have it.
func published(v *ownership.Volume, volume, node string) (bool, error) {
	switch e, has := v.Replica(node); {
	case v.Deleting:
		return false, usecase.Fail(usecase.ErrBusy, "volume %s is being deleted", volume)
	case !v.Sharing.ManyWriters && v.Primary.Phase.Open() && v.Primary.Node != node:
		return false, usecase.Fail(provision.ErrInUse, "volume %s is published to node %s, which may write it until it lets go or is shut out", volume, v.Primary.Node)
	default:
		return has && e.State != ownership.Removing && e.State != ownership.Gone, nil
	}
}

// recorded reads the record alone, and asks no node.
func (r Wishes) recorded(ctx context.Context, volume string) (*ownership.Volume, error) {
	v := &v1alpha1.Volume{}
	err := r.read(ctx, types.NamespacedName{Name: volume}, v)
	return record.Read(volume, v, err)
}

// Unpublish returns when the node is not the one that may write: it has let go, or was shut out. The attachment
// stays, so that the volume is back at once, and goes with the others when no pod has wanted the volume for at least
// ownership.ExpireAfter; the deadline is in the record. Without a node it is about every node. A volume that does
// not exist is published nowhere. usecase.ErrBusy: the node may still write.
func (r Wishes) Unpublish(ctx context.Context, volume, node string) error {
	if err := r.Client.Get(ctx, types.NamespacedName{Name: volume}, &v1alpha1.Volume{}, client.UnsafeDisableDeepCopy); err != nil {
		return client.IgnoreNotFound(err)
	}
	if _, err := r.Reconcile(ctx, named(volume)); err != nil {
		return err
	}
	v, err := r.recorded(ctx, volume)
	switch {
	case record.IsAbsent(err): // no node ever had it
		return nil
	case err != nil:
		return err
	}
	for _, writer := range v.Writing() {
		if node == "" || writer == node {
			return usecase.Fail(usecase.ErrBusy, "node %s may still write volume %s; it lets go when it unmounts, or is shut out", writer, volume)
		}
	}
	return nil
}

func absent(err error, format string, args ...any) error {
	if apierrors.IsNotFound(err) {
		return usecase.Fail(provision.ErrNotFound, format, args...)
	}
	return err
}
