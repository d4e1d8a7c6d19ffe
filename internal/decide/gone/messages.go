package gone

import (
	"fmt"
	"time"
)

// tooManyMessage names no figures: they change all the time while nodes come back.
const tooManyMessage = "more nodes than three, or than half of all, were deleted lately: that looks like a mistake, and no claim is released; " +
	"once fewer are gone the delay begins anew"

func (f Facts) gone() string { return fmt.Sprintf("node %s has no Node object: ", f.Node) }

// ClaimName names the claim that is, or was, to be deleted.
func (f Facts) ClaimName() string {
	if f.PersistentVolume != nil && f.PersistentVolume.Spec.ClaimRef != nil {
		ref := f.PersistentVolume.Spec.ClaimRef
		return ref.Namespace + "/" + ref.Name
	}
	return "(unknown)"
}

func (f Facts) pending(due time.Time) string {
	return fmt.Sprintf("%sunless it returns, claim %s is deleted after %s, so that another can be made elsewhere; "+
		"PersistentVolume %s and the data on the node are kept", f.gone(), f.ClaimName(), due.UTC().Format(time.RFC3339), f.PersistentVolume.Name)
}

func (f Facts) released() string {
	return fmt.Sprintf("%sclaim %s was deleted; PersistentVolume %s is retained, and the data is on the node; %s",
		f.gone(), f.ClaimName(), f.PersistentVolume.Name, f.wayBack())
}

// wayBack says how to use the data again.
func (f Facts) wayBack() string {
	pv := f.Volume.Name
	if f.PersistentVolume != nil {
		pv = f.PersistentVolume.Name
	}
	return fmt.Sprintf("to use it again: kubectl berth adopt %s %s --claim NAMESPACE/NAME, and make that claim with spec.volumeName %s", f.Node, f.Volume.Name, pv)
}
