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

// Objects is where a Reader looks up the objects that a pod names. Each method
// returns nil for a missing object. The objects are shared: they are only read.
type Objects interface {
	Claim(ctx context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error)
	PersistentVolume(ctx context.Context, name string) (*corev1.PersistentVolume, error)
	StorageClass(ctx context.Context, name string) (*storagev1.StorageClass, error)
	PoolClass(ctx context.Context, name string) (*v1alpha1.PoolClass, error)
	Volume(ctx context.Context, name string) (*v1alpha1.Volume, error)
	Snapshot(ctx context.Context, name string) (*v1alpha1.Snapshot, error)
	// VolumeSnapshot returns ErrNoVolumeSnapshots if there cannot be any.
	VolumeSnapshot(ctx context.Context, namespace, name string) (*VolumeSnapshot, error)
}

// Cached looks everything up in one client or cache. A client that caches no untyped
// objects, which is the default, reads VolumeSnapshots from the API server: it is
// asked for them only when a claim is made from one.
type Cached struct{ client.Reader }

var _ Objects = Cached{}

// Pod returns a pod.
func (c Cached) Pod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	return get(ctx, c.Reader, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.Pod{})
}

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

// PoolClass returns a PoolClass.
func (c Cached) PoolClass(ctx context.Context, name string) (*v1alpha1.PoolClass, error) {
	return get(ctx, c.Reader, client.ObjectKey{Name: name}, &v1alpha1.PoolClass{})
}

// Volume returns a Volume.
func (c Cached) Volume(ctx context.Context, name string) (*v1alpha1.Volume, error) {
	return get(ctx, c.Reader, client.ObjectKey{Name: name}, &v1alpha1.Volume{})
}

// Snapshot returns a Snapshot.
func (c Cached) Snapshot(ctx context.Context, name string) (*v1alpha1.Snapshot, error) {
	return get(ctx, c.Reader, client.ObjectKey{Name: name}, &v1alpha1.Snapshot{})
}

// VolumeSnapshot returns a VolumeSnapshot.
func (c Cached) VolumeSnapshot(ctx context.Context, namespace, name string) (*VolumeSnapshot, error) {
	return readVolumeSnapshot(ctx, c.Reader, namespace, name)
}

func get[T client.Object](ctx context.Context, from client.Reader, key client.ObjectKey, into T) (T, error) {
	var none T
	err := from.Get(ctx, key, into, client.UnsafeDisableDeepCopy)
	if err != nil {
		return none, client.IgnoreNotFound(err)
	}
	return into, nil
}

// Listed looks up Kubernetes' own objects in the listers of a scheduler, and Berth's
// in their own caches.
type Listed struct {
	Claims            corelisters.PersistentVolumeClaimLister
	PersistentVolumes corelisters.PersistentVolumeLister
	StorageClasses    storagelisters.StorageClassLister
	// Volumes reads Berth's Volumes and PoolClasses.
	Volumes client.Reader
	// Snapshots returns the reader of VolumeSnapshots and Berth's Snapshots, or nil
	// while there is none.
	Snapshots func() client.Reader
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

// PoolClass returns a PoolClass.
func (l Listed) PoolClass(ctx context.Context, name string) (*v1alpha1.PoolClass, error) {
	return Cached{l.Volumes}.PoolClass(ctx, name)
}

// Volume returns a Volume.
func (l Listed) Volume(ctx context.Context, name string) (*v1alpha1.Volume, error) {
	return Cached{l.Volumes}.Volume(ctx, name)
}

// Snapshot returns a Snapshot.
func (l Listed) Snapshot(ctx context.Context, name string) (*v1alpha1.Snapshot, error) {
	from := l.Snapshots()
	if from == nil {
		return nil, nil
	}
	return Cached{from}.Snapshot(ctx, name)
}

// VolumeSnapshot returns a VolumeSnapshot.
func (l Listed) VolumeSnapshot(ctx context.Context, namespace, name string) (*VolumeSnapshot, error) {
	from := l.Snapshots()
	if from == nil {
		return nil, ErrNoVolumeSnapshots
	}
	return readVolumeSnapshot(ctx, from, namespace, name)
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
