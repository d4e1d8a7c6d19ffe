package volumes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Delete deletes a volume and returns once every node that can be reached has
// removed its replica. A node that is away does not hold it up: the wish is
// durable, the Volume stays listed, and the node removes the data when it is
// back. A replica that is open is provision.ErrInUse. What does not exist, or
// never was Berth's, is no error.
func (s *Service) Delete(ctx context.Context, id string) error {
	if !v1alpha1.IsVolumeName(id) {
		return nil
	}
	unlock, err := s.lock(id)
	if err != nil {
		return err
	}
	defer unlock()
	events := s.watchers.watch(id)
	defer events.stop()

	v, err := s.get(ctx, id)
	if v == nil || err != nil {
		return err
	}
	if v, err = s.mark(ctx, v); v == nil || err != nil {
		return err
	}
	_, answer, gone, err := await(ctx, events, v, func(v *v1alpha1.Volume) verdict {
		return removed(v, s.nodes)
	})
	switch {
	case err != nil:
		return err
	case gone:
		return nil
	}
	return answer.err()
}

// mark makes the wish to delete durable, and returns the object as it was
// before, or nil if it is gone.
func (s *Service) mark(ctx context.Context, v *v1alpha1.Volume) (*v1alpha1.Volume, error) {
	if v.DeletionTimestamp != nil {
		return v, nil
	}
	err := s.client.Delete(ctx, v, client.Preconditions{UID: &v.UID})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsConflict(err):
		return nil, fail(ErrBusy, "volume %s was replaced while it was being deleted", v.Name)
	case err != nil:
		return nil, fmt.Errorf("deleting volume %s: %w", v.Name, err)
	}
	return v, nil
}

// removed judges a volume that is being deleted. It is done without the object
// being gone only when all that is left is on nodes that are away.
func removed(v *v1alpha1.Volume, nodes Nodes) verdict {
	var reachable string
	holders := Holders(v, nodes)
	for _, holder := range holders {
		if holder.Entry != nil && holder.Entry.Reason == v1alpha1.ReasonInUse {
			return verdict{failed, holder.Node, provision.ErrInUse, message(holder.Entry)}
		}
		if holder.Node != "" && nodes.Away(holder.Node) == "" {
			reachable = holder.Node
		}
	}
	if len(holders) > 0 && reachable == "" {
		return verdict{outcome: done}
	}
	return verdict{outcome: waiting, node: reachable}
}
