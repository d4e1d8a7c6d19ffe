package schedule

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"berth.dev/berth/api/v1alpha1"
)

// Objects is where a Reader looks up what a pod names. Each method returns nil
// for what does not exist. The objects are shared: they are only read.
type Objects interface {
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	StorageClass(ctx context.Context, name string) (*storagev1.StorageClass, error)
	Volume(ctx context.Context, name string) (*v1alpha1.Volume, error)
}

// Cached looks everything up in one client or cache.
type Cached struct{ client.Reader }

var _ Objects = Cached{}

// Claim returns a claim.
func (c Cached) Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return get(ctx, c.Reader, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.PersistentVolumeClaim{})
}

// PersistentVolume returns a PersistentVolume.
func (c Cached) PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	return get(ctx, c.Reader, client.ObjectKey{Name: name}, &corev1.PersistentVolume{})
}

// StorageClass returns a StorageClass.
func (c Cached) StorageClass(ctx context.Context, name string) (*storagev1.StorageClass, error) {
	return get(ctx, c.Reader, client.ObjectKey{Name: name}, &storagev1.StorageClass{})
}

// Volume returns a Volume.
func (c Cached) Volume(ctx context.Context, name string) (*v1alpha1.Volume, error) {
	return get(ctx, c.Reader, client.ObjectKey{Name: name}, &v1alpha1.Volume{})
}

func get[T client.Object](ctx context.Context, from client.Reader, key client.ObjectKey, into T) (T, error) {
	var none T
	err := from.Get(ctx, key, into, client.UnsafeDisableDeepCopy)
	if err != nil {
		return none, client.IgnoreNotFound(err)
	}
	return into, nil
}

// Listed looks Kubernetes' own objects up in the listers that a scheduler has,
// and Volumes in a cache of their own.
type Listed struct {
	Claims            corelisters.PersistentVolumeClaimLister
	PersistentVolumes corelisters.PersistentVolumeLister
	StorageClasses    storagelisters.StorageClassLister
	Volumes           client.Reader
}

var _ Objects = Listed{}

// Claim returns a claim.
func (l Listed) Claim(_ context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return found(l.Claims.PersistentVolumeClaims(namespace).Get(name))
}

// PersistentVolume returns a PersistentVolume.
func (l Listed) PersistentVolume(_ context.Context, name string) (*corev1.PersistentVolume, error) {
	return found(l.PersistentVolumes.Get(name))
}

// StorageClass returns a StorageClass.
func (l Listed) StorageClass(_ context.Context, name string) (*storagev1.StorageClass, error) {
	return found(l.StorageClasses.Get(name))
}

// Volume returns a Volume.
func (l Listed) Volume(ctx context.Context, name string) (*v1alpha1.Volume, error) {
	return Cached{l.Volumes}.Volume(ctx, name)
}

func found[T any](object *T, err error) (*T, error) {
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return object, nil
}
