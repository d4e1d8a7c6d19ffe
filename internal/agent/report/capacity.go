package report

import (
	"crypto/sha256"
	"encoding/hex"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/storageclass"
)

// Capacities returns the objects that tell the scheduler the room on the node: one for
// each StorageClass of the driver that one of its pools serves. They have names and a namespace; the
// caller sets the owner.
//
// The figure is the largest volume that one pool takes now, and not a sum: a
// volume never spans two pools. While the pools cannot be listed no new volume
// should be placed here, so the figure is zero.
func Capacities(d driver.Driver, f Facts, s pools.Latest, node, namespace string) []storagev1.CSIStorageCapacity {
	var capacities []storagev1.CSIStorageCapacity
	if !d.Capacity {
		return nil
	}
	for i := range f.StorageClasses {
		sc := &f.StorageClasses[i]
		if !d.Provisions(sc) {
			continue
		}
		bytes, served := classCapacity(f, s, sc)
		if !served {
			continue
		}
		capacity := quantity(bytes)
		capacities = append(capacities, storagev1.CSIStorageCapacity{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace,
				Name:      capacityName(node, sc.Name),
				Labels:    d.CapacityLabels(node),
			},
			StorageClassName:  sc.Name,
			NodeTopology:      &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.TopologyKey: node}},
			Capacity:          &capacity,
			MaximumVolumeSize: &capacity,
		})
	}
	return capacities
}

// classCapacity says whether the node serves a StorageClass, and with how many bytes.
func classCapacity(f Facts, s pools.Latest, sc *storagev1.StorageClass) (bytes int64, served bool) {
	parameters, err := storageclass.Parse(sc.Parameters)
	if err != nil {
		return 0, false // CreateVolume says what is wrong with it
	}
	for _, p := range s.Pools {
		for _, c := range f.serving(p) {
			if c.Name == parameters.PoolClass {
				served = true
				bytes = max(bytes, poolclass.Room(&c, p))
			}
		}
	}
	if s.Err != nil {
		bytes = 0
	}
	return bytes, served
}

func capacityName(node, class string) string {
	sum := sha256.Sum256([]byte(node + "/" + class)) // neither holds a slash
	return "berth-" + hex.EncodeToString(sum[:16])
}

// OwnCapacities selects the capacity objects that a node's agent publishes for a driver.
func OwnCapacities(d driver.Driver, node string) labels.Selector {
	return labels.SelectorFromSet(d.CapacityLabels(node))
}
