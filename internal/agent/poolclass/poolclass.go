// Package poolclass says what a PoolClass means on one node: which of its pools
// serve it, and how much of them. It is pure.
package poolclass

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Serves says whether a pool of a node with these labels serves the class.
func Serves(c *v1alpha1.PoolClass, p provision.PoolRef, node map[string]string) bool {
	return Names(c, p) && admits(c, node)
}

// Names says whether the class names a pool, on whichever node.
func Names(c *v1alpha1.PoolClass, p provision.PoolRef) bool {
	return string(c.Spec.Provisioner) == p.Type && c.Spec.LVM != nil && slices.Contains(c.Spec.LVM.VolumeGroups, p.Name)
}

// admits says whether the class's selector matches a node. A selector that
// cannot be read matches nothing.
func admits(c *v1alpha1.PoolClass, node map[string]string) bool {
	if c.Spec.NodeSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(c.Spec.NodeSelector)
	return err == nil && selector.Matches(labels.Set(node))
}

// Spare is what volumes of the class leave free in each pool.
func Spare(c *v1alpha1.PoolClass) provision.Spare {
	s := provision.Spare{Percent: int(c.Spec.SparePercent)}
	if c.Spec.Spare != nil {
		s.Bytes = c.Spec.Spare.Value()
	}
	return s
}

// Room is the largest volume in bytes that can be made in a pool of the class.
func Room(c *v1alpha1.PoolClass, p provision.Pool) int64 {
	if p.Problem != "" || p.Unit <= 0 {
		return 0
	}
	return max(0, (p.Free-Spare(c).In(p.Total))/p.Unit*p.Unit)
}
