package wire

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/internal/schedule"
)

// indexAvailable returns a function that tells whether a StorageClass has
// PersistentVolumes that no claim has.
func indexAvailable(informer cache.SharedIndexInformer) (func(class string) bool, error) {
	if err := informer.AddIndexers(cache.Indexers{schedule.AvailableIndex: availableIn}); err != nil {
		return nil, fmt.Errorf("indexing PersistentVolumes: %w", err)
	}
	return func(class string) bool {
		keys, err := informer.GetIndexer().IndexKeys(schedule.AvailableIndex, class)
		return err != nil || len(keys) > 0
	}, nil
}

func availableIn(obj any) ([]string, error) {
	if pv, ok := obj.(*corev1.PersistentVolume); ok {
		if class, available := schedule.AvailableIn(pv); available {
			return []string{class}, nil
		}
	}
	return nil, nil
}
