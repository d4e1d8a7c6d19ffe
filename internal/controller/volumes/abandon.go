package volumes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth.dev/berth/api/v1alpha1"
)

// Abandon takes a reservation off its node, so that somebody else may have the
// room: the volumes that it was to go with found none. What may have data on it
// stays, and so does what its node has not answered for: what is carved there
// unseen nobody would remove. So does what a node has found, since that may be older. A reservation that somebody else writes at the same
// time is theirs.
func (s *Service) Abandon(ctx context.Context, name string) error {
	name = v1alpha1.VolumeName(name)
	unlock, err := s.objects.Lock(name)
	if err != nil {
		return err
	}
	defer unlock()
	v, err := s.objects.Get(ctx, name)
	if v == nil || err != nil {
		return err
	}
	if !v.Reserved() || v.Found() != "" || v.DeletionTimestamp != nil || len(v.Spec.Replicas) == 0 || created(v).Outcome == waiting {
		return nil
	}
	v.Spec.Replicas = nil
	if err := s.client.Update(ctx, v); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("taking volume %s off its node: %w", name, err)
	}
	return nil
}
