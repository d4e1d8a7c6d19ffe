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
	if err == nil {
		c.request, err = c.request.In(class)
		return err
	}
	if c.request.Mode != v1alpha1.Block {
		c.request.FSType = cmp.Or(c.request.FSType, storageclass.DefaultFSType)
	}
	return nil // no node serves a missing class, and placing the volume reports that
}

// In returns the request as CreateVolume makes a volume of it from a class: with the filesystem of
// the class, if the request names none. An error says that the class has no such volumes. The
// request of a copy must have the filesystem of its source.
func (r Request) In(class *v1alpha1.PoolClass) (Request, error) {
	if r.Mode == v1alpha1.Block {
		return r, storageclass.CheckFSType("", class)
	}
	r.FSType = cmp.Or(r.FSType, storageclass.FSTypeFor(class.Spec.Provisioner))
	return r, cmp.Or(storageclass.CheckFSType(r.FSType, class), storageclass.CheckMkfsOptions(r.FSType, r.MkfsOptions), r.mountable())
}
