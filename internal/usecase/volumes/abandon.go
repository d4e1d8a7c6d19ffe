package volumes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase"
)

// Abandon takes a reservation off its node, so that other volumes may have the room: the other
// volumes of its pod found none. A reservation that another process writes at the same time is
// left to that process.
func (s *Service) Abandon(ctx context.Context, name string) error {
	name = v1alpha1.VolumeName(name)
	unlock, err := s.objects.Lock(name)
	if err != nil {
		return err
	}
	defer unlock()
	v, err := s.objects.Get(ctx, name)
	if v == nil {
		return err
	}
	if !Leaves(v) {
		return nil
	}
	v.Spec.Replicas = nil
	if err := s.client.Update(ctx, v); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		return fmt.Errorf("taking volume %s off its node: %w", name, err)
	}
	return nil
}

// Leaves says whether a reservation may be taken off its node. One that may have data on it
// stays. So does one that its node has not answered for: no process would remove a volume that
// was carved there unseen. So does one of which a node has found data, since that may be older.
func Leaves(v *v1alpha1.Volume) bool {
	return v.Reserved() && v.Found() == "" && v.DeletionTimestamp == nil && len(v.Spec.Replicas) > 0 && created(v).State != usecase.Waiting
}
