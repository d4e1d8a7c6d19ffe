package extender

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"

	"berth.dev/berth/internal/schedule"
)

// Source is where objects are looked up. A missing object is nil.
type Source interface {
	schedule.Objects
	schedule.Statics
	Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error)
}

// Objects looks objects up in a cache. Pods, claims and storage classes that the cache lacks it
// looks up in the API server.
//
// The scheduler asks about pods and claims in its own cache, which may be ahead of this one. A
// claim that this process does not know looks like a claim that is not Berth's. The pod would
// then be allowed on any node: with several claims, on a node that has room for some of them and
// keeps those for ever.
type Objects struct {
	Source
	Live Source
	// Misses limits how often Live is asked.
	Misses flowcontrol.PassiveRateLimiter
}

// errTooManyMisses is an answer that a scheduler can go on with: it asks again, or decides
// by the capacities that the nodes publish.
var errTooManyMisses = errors.New("too many questions about objects that the controller has not heard of: ask again")

// Pod returns the pod of that name and UID, or nil: a pod with another UID is not the
// one that the question is about.
func (o Objects) Pod(ctx context.Context, namespace, name string, uid types.UID) (*corev1.Pod, error) {
	pod, err := o.Source.Pod(ctx, namespace, name)
	if (pod == nil || pod.UID != uid) && err == nil && name != "" && namespace != "" {
		if err = o.miss(); err == nil {
			pod, err = o.Live.Pod(ctx, namespace, name)
		}
	}
	if err != nil || pod == nil || pod.UID != uid {
		return nil, err
	}
	return pod, nil
}

// Claim returns a claim.
func (o Objects) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	c, err := o.Source.Claim(ctx, namespace, name)
	if c != nil || err != nil || name == "" {
		return c, err
	}
	if err := o.miss(); err != nil {
		return nil, err
	}
	return o.Live.Claim(ctx, namespace, name)
}

// StorageClass returns a StorageClass.
func (o Objects) StorageClass(ctx context.Context, name string) (*storagev1.StorageClass, error) {
	c, err := o.Source.StorageClass(ctx, name)
	if c != nil || err != nil || name == "" {
		return c, err
	}
	if err := o.miss(); err != nil {
		return nil, err
	}
	return o.Live.StorageClass(ctx, name)
}

func (o Objects) miss() error {
	if !o.Misses.TryAccept() {
		return errTooManyMisses
	}
	return nil
}
