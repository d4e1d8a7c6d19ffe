package volumes

import (
	"context"

	"berth.dev/berth/api/v1alpha1"
)

// publish turns a reservation into an ordinary volume, which may have data.
func (a *attempt) publish(ctx context.Context, v *v1alpha1.Volume) (*v1alpha1.Volume, error) {
	public := v.DeepCopy()
	delete(public.Annotations, v1alpha1.ReservedAnnotation)
	return a.update(ctx, public)
}
