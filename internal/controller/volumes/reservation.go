package volumes

import (
	"context"

	"berth.dev/berth/api/v1alpha1"
)

// publish makes a reservation a volume that may have data on it.
func (a *attempt) publish(ctx context.Context, v *v1alpha1.Volume) (*v1alpha1.Volume, error) {
	public := v.DeepCopy()
	delete(public.Annotations, v1alpha1.ReservedAnnotation)
	return a.update(ctx, public)
}
