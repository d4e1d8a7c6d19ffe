package agent

import (
	"context"
	"sync/atomic"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/publish/staging"
)

// wishes reads the specs of Volumes from the watch of the cluster half, while there is one.
type wishes struct {
	reader atomic.Pointer[client.Reader]
}

var _ staging.Wishes = (*wishes)(nil)

func (w *wishes) use(r client.Reader) { w.reader.Store(&r) }

// Spec implements staging.Wishes. It returns nil while the watch is not filled yet, or was
// never connected; that is no error but a reason to try again.
func (w *wishes) Spec(ctx context.Context, id string) *v1alpha1.VolumeSpec {
	reader := w.reader.Load()
	if reader == nil {
		return nil
	}
	var v v1alpha1.Volume
	if err := (*reader).Get(ctx, client.ObjectKey{Name: id}, &v); err != nil {
		return nil
	}
	return &v.Spec
}
