package binding

import (
	"fmt"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/informers"

	"berth.dev/berth/internal/driver"
)

// ours is the driver whose claims the plugin binds.
var ours = driver.Local()

// MaskCapacity makes the factory's CSIDriver objects of Berth say that they
// publish no capacity. It must be called before the informers start, and holds
// for every profile of the process: one without Berth's plugin would place claims
// of Berth's without any check, and leave all refusals to the nodes.
func MaskCapacity(factory informers.SharedInformerFactory) error {
	informer := factory.Storage().V1().CSIDrivers().Informer()
	if err := informer.SetTransform(maskCapacity); err != nil {
		return fmt.Errorf("masking the capacity of CSIDrivers: %w", err)
	}
	return nil
}

// maskCapacity works in place, as transforms do, and drops managed fields, which
// are not read.
func maskCapacity(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil {
		accessor.SetManagedFields(nil)
	}
	if d, ok := obj.(*storagev1.CSIDriver); ok && d.Name == ours.Name {
		d.Spec.StorageCapacity = nil
	}
	return obj, nil
}
