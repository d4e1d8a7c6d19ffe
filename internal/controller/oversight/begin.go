package oversight

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/record"
)

// begin writes the first record of a shared disk: no node has it. What is on the disk is not known, so the
// first mount begins with a check. If a backup has lost a record with later epochs, the nodes that know of
// them mend this one, and the disk itself refuses who comes without its key.
//
// The first record of copies follows from the copies that were made; nothing makes any yet.
func begin(ctx context.Context, r *Reconciler, name string) (begun bool, err error) {
	v := &v1alpha1.Volume{}
	if err := r.read(ctx, types.NamespacedName{Name: name}, v); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if v.Spec.Replication.Kind != v1alpha1.ReplicationAttachments || v.Status.Ownership != nil || v.DeletionTimestamp != nil {
		return false, nil
	}
	first := lineage.Epoch{Number: 1, ID: r.FreshID()}
	a := v.Spec.Replication.Attachments
	next := &ownership.Volume{
		Kind: ownership.Attachments, Factor: int(v.Spec.Replication.Factor), Size: v.Spec.Capacity.Value(),
		Sharing: ownership.Sharing{MaxShares: int(a.MaxShares), Yields: a.Yields, Persistent: a.Persistent},
		Epoch:   first, Lineage: lineage.Lineage{{Epoch: first}},
	}
	if f := v.Spec.Replication.Failover; f != nil {
		next.Failover.Automatic = f.Automatic
		if f.MaxDataLoss != nil {
			next.Failover.MaxDataLoss = f.MaxDataLoss.Duration
		}
	}
	written, err := record.Into(v, next)
	if err != nil {
		return false, err
	}
	switch err := r.Client.Status().Update(ctx, written); {
	case apierrors.IsConflict(err):
		return true, nil // another process was faster
	case err != nil:
		return false, fmt.Errorf("writing the first record: %w", err)
	}
	log.FromContext(ctx).Info("record begun", "volume", name)
	return true, nil
}
