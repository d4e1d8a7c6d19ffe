package extender

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"berth.dev/berth/internal/schedule"
)

// Objects looks things up in a cache, and claims and storage classes that it lacks in the API
// server.
//
// The scheduler asks about pods whose claims are in its own cache, which may be ahead. A claim
// that nobody here has heard of cannot be told from one that is not Berth's, and the pod would
// be let go anywhere: with several claims, to a node that has room for some of them and
// keeps those for ever.
type Objects struct {
	schedule.Objects
	Live schedule.Objects
}

// Claim returns a claim.
func (o Objects) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	c, err := o.Objects.Claim(ctx, namespace, name)
	if c != nil || err != nil || name == "" {
		return c, err
	}
	return o.Live.Claim(ctx, namespace, name)
}

// StorageClass returns a StorageClass.
func (o Objects) StorageClass(ctx context.Context, name string) (*storagev1.StorageClass, error) {
	c, err := o.Objects.StorageClass(ctx, name)
	if c != nil || err != nil || name == "" {
		return c, err
	}
	return o.Live.StorageClass(ctx, name)
}
