package volumes

import (
	"context"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase"
)

// Delete deletes a volume and returns once every node that can be reached has removed
// its replica. A node that is away does not delay it: the deletion is durable, the
// Volume stays listed, and the node removes the data when it is back. If a replica is
// open, or is being copied, the error is provision.ErrInUse. A volume that does not
// exist, or never was Berth's, is no error.
func (s *Service) Delete(ctx context.Context, id string) error {
	if !v1alpha1.IsVolumeName(id) {
		return nil
	}
	return s.objects.Delete(ctx, id, func(v *v1alpha1.Volume) usecase.Answer {
		return usecase.PlacedVolume(v).Removed(s.nodes)
	})
}
