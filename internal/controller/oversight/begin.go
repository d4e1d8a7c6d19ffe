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

// begin writes the first record of a volume.
func begin(ctx context.Context, r *Reconciler, name string) (begun bool, err error) {
	v := &v1alpha1.Volume{}
	if err := r.read(ctx, types.NamespacedName{Name: name}, v); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	if v.Status.Ownership != nil || v.DeletionTimestamp != nil {
		return false, nil
	}
	parameters, err := record.Parameters(v)
	if err != nil {
		return false, err
	}
	next := beginning(parameters, v.Spec.Replicas, r.FreshID)
	if next == nil {
		return false, nil
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

// beginning returns the first record of a volume with these parameters, nil if it cannot have one yet.
//
// No node has a shared disk. What is on it is not known, so the first mount begins with a check. If a backup has lost
// a record with later epochs, the nodes that know of them mend this one, and the disk itself refuses who comes
// without its key.
//
// Copies are made on the nodes that the Volume names, and the first of these makes the first, empty snapshot. If a
// backup has lost a record, none of them does: it has, or another node has, a copy with data, and mends the record.
func beginning(parameters *ownership.Volume, wanted []v1alpha1.ReplicaSpec, freshID func() string) *ownership.Volume {
	if !parameters.Kind.Traits().Data {
		next := *parameters
		next.Epoch = lineage.Epoch{Number: 1, ID: freshID()}
		next.Lineage = lineage.Lineage{{Epoch: next.Epoch}}
		return &next
	}
	if len(wanted) == 0 {
		return nil // it is not placed
	}
	nodes := make([]string, 0, len(wanted))
	for _, w := range wanted {
		nodes = append(nodes, w.Node)
	}
	return ownership.Begin(*parameters, nodes[0], nodes, freshID())
}
