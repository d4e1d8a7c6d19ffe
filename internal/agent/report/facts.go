package report

import (
	"slices"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Facts is what the API server says that a report depends on.
type Facts struct {
	// Node as its object has it; nil when there is no such Node (any more).
	Node           *metav1.PartialObjectMetadata
	PoolClasses    []v1alpha1.PoolClass
	StorageClasses []storagev1.StorageClass
	// Expected are the pools that hold, or are to hold, volumes of this node.
	Expected []string
	// Orphans are volumes in the pools that no Volume accounts for.
	Orphans []string
}

// serving returns the classes that a pool serves on this node, by name.
func (f Facts) serving(p provision.PoolRef) []v1alpha1.PoolClass {
	var serving []v1alpha1.PoolClass
	for _, c := range f.PoolClasses {
		if selects(c, p) && f.selected(c) {
			serving = append(serving, c)
		}
	}
	slices.SortFunc(serving, func(a, b v1alpha1.PoolClass) int { return compare(a.Name, b.Name) })
	return serving
}

// selects says whether a class names a pool.
func selects(c v1alpha1.PoolClass, p provision.PoolRef) bool {
	return string(c.Spec.Provisioner) == p.Type && c.Spec.LVM != nil && slices.Contains(c.Spec.LVM.VolumeGroups, p.Name)
}

// selected says whether a class's selector matches the node. A selector that
// cannot be read matches nothing.
func (f Facts) selected(c v1alpha1.PoolClass) bool {
	if c.Spec.NodeSelector == nil {
		return true
	}
	if f.Node == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(c.Spec.NodeSelector)
	return err == nil && selector.Matches(labels.Set(f.Node.GetLabels()))
}

// room is the largest volume that can be made in a pool with spare bytes kept.
func room(p provision.Pool, spare int64) int64 {
	if p.Problem != "" || p.Unit <= 0 {
		return 0
	}
	return max(0, (p.Free-spare)/p.Unit*p.Unit)
}

func spareOf(c v1alpha1.PoolClass) int64 {
	if c.Spec.Spare == nil {
		return 0
	}
	return c.Spec.Spare.Value()
}
