package wire

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// availableIndex holds the PersistentVolumes that a claim could match, by
// StorageClass. They are few in any cluster; those that belong to a claim, which
// are many, are not in it.
const availableIndex = "berth.dev/available-by-class"

// indexAvailable returns whether a StorageClass has PersistentVolumes that nobody
// has.
func indexAvailable(informer cache.SharedIndexInformer) (func(class string) bool, error) {
	if err := informer.AddIndexers(cache.Indexers{availableIndex: availableIn}); err != nil {
		return nil, fmt.Errorf("indexing PersistentVolumes: %w", err)
	}
	return func(class string) bool {
		keys, err := informer.GetIndexer().IndexKeys(availableIndex, class)
		return err != nil || len(keys) > 0
	}, nil
}

// availableIn is the class of a PersistentVolume that no claim has yet. One that
// is kept for a claim by name alone counts: the claim has yet to be matched.
func availableIn(obj any) ([]string, error) {
	pv, ok := obj.(*corev1.PersistentVolume)
	if !ok || pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != "" {
		return nil, nil
	}
	return []string{pv.Spec.StorageClassName}, nil
}
