package volumes

import (
	"context"

	"berth.dev/berth/api/v1alpha1"
)

// ReservedAnnotation is on a Volume that a scheduler has made and CreateVolume
// has not returned yet. While it is there nobody has been told of the volume, so
// nobody's data can be on it, and it may be deleted when it is not wanted. It is
// taken off before CreateVolume returns: one write more for a volume that was
// reserved, and the only proof there is. Without it a volume whose claim and
// PersistentVolume are gone looks the same whether it was never used or is being
// moved to another claim by hand.
const ReservedAnnotation = "berth.dev/reserved"

// Reserved is whether a Volume is a reservation that nobody has been told of.
func Reserved(v *v1alpha1.Volume) bool {
	_, reserved := v.Annotations[ReservedAnnotation]
	return reserved
}

// publish makes a reservation a volume that may have data on it.
func (a *attempt) publish(ctx context.Context, v *v1alpha1.Volume) (*v1alpha1.Volume, error) {
	public := v.DeepCopy()
	delete(public.Annotations, ReservedAnnotation)
	return a.update(ctx, public)
}
