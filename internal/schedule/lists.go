package schedule

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
)

// Lists holds the objects of a cluster at one moment. A caller that need not follow
// changes builds a Book from it, and a Reader can read from it.
type Lists struct {
	// Driver whose claims and pods are looked at.
	Driver driver.Driver
	// Volumes of all drivers, which share the pools.
	Volumes           []v1alpha1.Volume
	StorageNodes      []v1alpha1.StorageNode
	PoolClasses       []v1alpha1.PoolClass
	Claims            []corev1.PersistentVolumeClaim
	PersistentVolumes []corev1.PersistentVolume
	Pods              []corev1.Pod
	StorageClasses    []storagev1.StorageClass
	Snapshots         []v1alpha1.Snapshot
	// Nodes of Kubernetes: their labels say which static PersistentVolumes they reach.
	Nodes []corev1.Node
	// VolumeSnapshots is nil if the cluster does not know such objects.
	VolumeSnapshots []VolumeSnapshot
}

var _ Objects = (*Lists)(nil)

// Book returns a synced Book of the lists. The room that schedulers hold in memory is not in it.
func (l *Lists) Book(beats Heartbeats) *Book {
	f := newFeeder(NewBook(), Informers{Driver: l.Driver, Heartbeats: beats})
	each(l.StorageClasses, f.observeStorageClass)
	each(l.PoolClasses, f.observePoolClass)
	each(l.StorageNodes, f.observeNode)
	each(l.Volumes, f.observeVolume)
	each(l.PersistentVolumes, f.observePersistentVolume)
	each(l.Claims, f.observeClaim)
	each(l.Pods, f.observePod)
	f.book.setSynced()
	return f.book
}

func each[T any](items []T, observe func(*T)) {
	for i := range items {
		observe(&items[i])
	}
}

// Claim returns a claim.
func (l *Lists) Claim(_ context.Context, namespace, name string) (*corev1.PersistentVolumeClaim, error) {
	return first(l.Claims, func(c *corev1.PersistentVolumeClaim) bool { return c.Namespace == namespace && c.Name == name }), nil
}

// PersistentVolume returns a PersistentVolume.
func (l *Lists) PersistentVolume(_ context.Context, name string) (*corev1.PersistentVolume, error) {
	return first(l.PersistentVolumes, func(pv *corev1.PersistentVolume) bool { return pv.Name == name }), nil
}

// StorageClass returns a StorageClass.
func (l *Lists) StorageClass(_ context.Context, name string) (*storagev1.StorageClass, error) {
	return first(l.StorageClasses, func(c *storagev1.StorageClass) bool { return c.Name == name }), nil
}

// PoolClass returns a PoolClass.
func (l *Lists) PoolClass(_ context.Context, name string) (*v1alpha1.PoolClass, error) {
	return first(l.PoolClasses, func(c *v1alpha1.PoolClass) bool { return c.Name == name }), nil
}

// Volume returns a Volume of the driver.
func (l *Lists) Volume(_ context.Context, name string) (*v1alpha1.Volume, error) {
	return first(l.Volumes, func(v *v1alpha1.Volume) bool { return v.Name == name && l.Driver.Owns(v) }), nil
}

// Snapshot returns a Snapshot of the driver.
func (l *Lists) Snapshot(_ context.Context, name string) (*v1alpha1.Snapshot, error) {
	return first(l.Snapshots, func(s *v1alpha1.Snapshot) bool { return s.Name == name && l.Driver.Owns(s) }), nil
}

// VolumeSnapshot returns a VolumeSnapshot.
func (l *Lists) VolumeSnapshot(_ context.Context, namespace, name string) (*VolumeSnapshot, error) {
	if l.VolumeSnapshots == nil {
		return nil, ErrNoVolumeSnapshots
	}
	return first(l.VolumeSnapshots, func(s *VolumeSnapshot) bool { return s.Namespace == namespace && s.Name == name }), nil
}

func first[T any](items []T, is func(*T) bool) *T {
	for i := range items {
		if is(&items[i]) {
			return &items[i]
		}
	}
	return nil
}
