package volumes

import (
	"cmp"
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/storageclass"
)

// settleFilesystem gives a request that names no filesystem its class's, and refuses one
// that the class's pools do not have. It is left until the volume is made: one that is there has
// its filesystem, whatever the class has become.
func (a *attempt) settleFilesystem(ctx context.Context) error {
	if a.request.Mode == v1alpha1.Block {
		return nil
	}
	class, key := &v1alpha1.PoolClass{}, types.NamespacedName{Name: a.request.PoolClass}
	err := a.client.Get(ctx, key, class)
	if apierrors.IsNotFound(err) { // by the watch: it may have just been made
		err = a.live.Get(ctx, key, class)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading PoolClass %s: %w", a.request.PoolClass, err)
	}
	a.request.FSType = cmp.Or(a.request.FSType, storageclass.FSTypeFor(class.Spec.Provisioner))
	if err != nil {
		return nil //nolint:nilerr // no node serves a class that is not there, which is said when the volume is to be placed
	}
	return cmp.Or(storageclass.CheckFSType(a.request.FSType, class), storageclass.CheckMkfsOptions(a.request.FSType, a.request.MkfsOptions), a.request.mountable())
}
