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

// settleFilesystem gives a request without a filesystem that of its class, and refuses a
// filesystem, or a raw block volume, that the class's pools do not have. It runs only when the volume is made: an
// existing volume keeps its filesystem, even if the class has changed.
func (c *call) settleFilesystem(ctx context.Context) error {
	class, key := &v1alpha1.PoolClass{}, types.NamespacedName{Name: c.request.PoolClass}
	err := c.client.Get(ctx, key, class)
	if apierrors.IsNotFound(err) { // the class may be new, and the watch does not show it yet
		err = c.live.Get(ctx, key, class)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading PoolClass %s: %w", c.request.PoolClass, err)
	}
	if c.request.Mode != v1alpha1.Block {
		c.request.FSType = cmp.Or(c.request.FSType, storageclass.FSTypeFor(class.Spec.Provisioner))
	}
	if err != nil {
		return nil //nolint:nilerr // no node serves a missing class, and placing the volume reports that
	}
	if c.request.Mode == v1alpha1.Block {
		return storageclass.CheckFSType("", class)
	}
	return cmp.Or(storageclass.CheckFSType(c.request.FSType, class), storageclass.CheckMkfsOptions(c.request.FSType, c.request.MkfsOptions), c.request.mountable())
}
