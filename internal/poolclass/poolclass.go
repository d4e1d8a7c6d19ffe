// Package poolclass says what a PoolClass means on one node: which of the node's pools
// serve it, and how much of each pool. It only computes and has no side effects.
package poolclass

import (
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"
)

// Serves says whether a pool of a node with these labels serves the class.
func Serves(c *v1alpha1.PoolClass, p provision.Pool, node map[string]string) bool {
	return Names(c, p) && Admits(c, node)
}

// Names says whether the class names a pool, on any node.
func Names(c *v1alpha1.PoolClass, p provision.Pool) bool {
	if string(c.Spec.Provisioner) != p.Type {
		return false
	}
	switch spec := c.Spec; {
	case spec.LVM != nil:
		return matches(spec.LVM.VolumeGroups, p.Name)
	case spec.LVMThin != nil:
		return slices.Contains(spec.LVMThin.ThinPools, p.Name)
	case spec.ZFS != nil:
		return slices.ContainsFunc(spec.ZFS.Pools, func(name string) bool { return provision.TraitsOf(p.Type).Prefix+name == p.Name })
	case spec.Btrfs != nil:
		return slices.Contains(spec.Btrfs.Filesystems, strings.TrimPrefix(p.Name, provision.TraitsOf(p.Type).Prefix))
	case spec.Devices != nil:
		return Selects(spec.Devices, p)
	default:
		return false
	}
}

// Selects says whether a disk is one of those that a class selects.
func Selects(d *v1alpha1.DevicePools, p provision.Pool) bool {
	return (d.Media == "" || string(d.Media) == p.Media) &&
		(d.MinSize == nil || p.Total >= d.MinSize.Value()) &&
		(d.MaxSize == nil || p.Total <= d.MaxSize.Value()) &&
		slices.ContainsFunc(p.Paths, func(name string) bool { return matches(d.Paths, name) })
}

// matches says whether a name matches one of the patterns. A pattern that cannot be
// read matches nothing.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, err := path.Match(pattern, name)
		return err == nil && matched
	})
}

// Admits says whether the class's selector matches a node. A selector that
// cannot be read matches nothing.
func Admits(c *v1alpha1.PoolClass, node map[string]string) bool {
	if c.Spec.NodeSelector == nil {
		return true
	}
	selector, err := metav1.LabelSelectorAsSelector(c.Spec.NodeSelector)
	return err == nil && selector.Matches(labels.Set(node))
}

// Limits says how far volumes of the class may use each pool.
func Limits(c *v1alpha1.PoolClass) provision.Limits {
	l := provision.Limits{SparePercent: int(c.Spec.SparePercent)}
	if c.Spec.Spare != nil {
		l.Spare = c.Spec.Spare.Value()
	}
	if thin := c.Spec.LVMThin; thin != nil {
		l.Overprovision, l.MaxFill = int(thin.OverprovisionPercent), int(thin.MaxFillPercent)
	}
	return l
}

// Wipe says how the bytes of a deleted volume of the class are wiped.
func Wipe(c *v1alpha1.PoolClass) provision.Wipe {
	if c.Spec.LVM == nil {
		return ""
	}
	return provision.Wipe(c.Spec.LVM.Wipe)
}

// ZFS says how a volume of the class is kept in a zpool. A block size that the API
// refuses gives the default.
func ZFS(c *v1alpha1.PoolClass) provision.ZFSOptions {
	if c.Spec.ZFS == nil {
		return provision.ZFSOptions{}
	}
	o := provision.ZFSOptions{Compression: c.Spec.ZFS.Compression}
	if block, err := resource.ParseQuantity(string(c.Spec.ZFS.Volblocksize)); err == nil {
		o.BlockSize = block.Value()
	}
	if record, err := resource.ParseQuantity(string(c.Spec.ZFS.Recordsize)); err == nil {
		o.RecordSize = record.Value()
	}
	return o
}

// Request asks for a volume in a pool of the class, as the class says. The caller fills in the
// fields that the class does not decide.
func Request(c *v1alpha1.PoolClass, pool provision.PoolRef) provision.CreateRequest {
	return provision.CreateRequest{Pool: pool, Limits: Limits(c), Wipe: Wipe(c), ZFS: ZFS(c)}
}

// Room is the largest volume in bytes that can be made in a pool of the class.
func Room(c *v1alpha1.PoolClass, p provision.Pool) int64 {
	if p.Problem != "" {
		return 0
	}
	return Limits(c).Room(p)
}
