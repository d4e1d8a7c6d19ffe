// Package poolclass says what a PoolClass means on one node: which of the node's pools
// serve it, and how much of each pool. It only computes and has no side effects.
package poolclass

import (
	"cmp"
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
		return slices.Contains(refs(p.Type, spec.LVMThin.ThinPools), p.PoolRef)
	case spec.ZFS != nil:
		return slices.Contains(refs(p.Type, spec.ZFS.Pools), p.PoolRef)
	case spec.Btrfs != nil:
		return slices.Contains(refs(p.Type, spec.Btrfs.Filesystems), p.PoolRef)
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

// Tuning says how a pool stores a volume of the class. A size that the API refuses gives the
// default.
func Tuning(c *v1alpha1.PoolClass) provision.Tuning {
	if c.Spec.ZFS == nil {
		return provision.Tuning{}
	}
	o := provision.Tuning{Compression: c.Spec.ZFS.Compression}
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
	return provision.CreateRequest{Pool: pool, Limits: Limits(c), Wipe: Wipe(c), Tuning: Tuning(c)}
}

// Room is the largest volume in bytes that can be made in a pool of the class.
func Room(c *v1alpha1.PoolClass, p provision.Pool) int64 {
	if p.Problem != "" {
		return 0
	}
	return Limits(c).Room(p)
}

// Asked holds the pools that a class asks for on each node.
type Asked struct {
	// Made is the pool that Berth makes of the disks that Disks selects, in Layout. Disks is nil
	// if the class asks for none.
	Made   provision.PoolRef
	Disks  *v1alpha1.DevicePools
	Layout provision.Layout
	// Sized is the pool that Berth carves out of another, at least of SizePercent of it; zero if
	// the class asks for none.
	Sized       provision.PoolRef
	SizePercent int
	// Extended are the pools that Berth extends when they fill up.
	Extended  []provision.PoolRef
	Extension provision.Extension
	// Named are the pools that Berth uses only because the class names them.
	Named []provision.PoolRef
}

// Asks returns the pools that the class asks for.
func Asks(c *v1alpha1.PoolClass) (a Asked) {
	var pools []provision.PoolRef
	switch spec := c.Spec; {
	case spec.LVM != nil:
		pools = refs(provision.LVM, spec.LVM.VolumeGroups)
		if spec.LVM.Create != nil {
			a.Disks = &spec.LVM.Create.Disks
		}
	case spec.LVMThin != nil:
		return asksThin(spec.LVMThin)
	case spec.ZFS != nil:
		pools = refs(provision.ZFS, spec.ZFS.Pools)
		if create := spec.ZFS.Create; create != nil {
			a.Disks, a.Layout = &create.Disks, layout(create)
		}
	case spec.Btrfs != nil:
		pools = refs(provision.Btrfs, spec.Btrfs.Filesystems)
		if spec.Btrfs.Create != nil {
			a.Disks = &spec.Btrfs.Create.Disks
		}
	}
	if a.Disks != nil && len(pools) == 1 {
		a.Made = pools[0]
		return a
	}
	return Asked{Named: slices.DeleteFunc(pools, func(p provision.PoolRef) bool { return !provision.TraitsOf(p.Type).ByName })}
}

func asksThin(c *v1alpha1.LVMThinPools) (a Asked) {
	pools := refs(provision.LVMThin, c.ThinPools)
	if create := c.Create; create != nil && len(pools) == 1 {
		a.Sized, a.SizePercent, a.Disks = pools[0], int(create.SizePercent), create.Disks
		if a.Disks != nil {
			group, _, _ := strings.Cut(a.Sized.Name, "/")
			a.Made = provision.PoolRef{Type: provision.TypeOf(group), Name: group}
		}
	}
	if extend := c.AutoExtend; extend != nil {
		a.Extended, a.Extension = pools, provision.Extension{At: int(extend.AtPercent), By: int(extend.ByPercent)}
	}
	return a
}

// refs returns pools of a type by their names in a class, which have no prefix.
func refs(provisioner string, names []string) []provision.PoolRef {
	t := provision.TraitsOf(provisioner)
	pools := make([]provision.PoolRef, 0, len(names))
	for _, name := range names {
		pools = append(pools, provision.PoolRef{Type: t.Type, Name: t.Prefix + name})
	}
	return pools
}

// layout returns the layout that a class asks for. Only some redundancies leave the width open.
func layout(c *v1alpha1.ZpoolCreation) provision.Layout {
	bounds := provision.TraitsOf(provision.ZFS).Layouts
	l := provision.Layout{Redundancy: provision.Redundancy(c.Layout), Width: int(c.Width), Ashift: int(cmp.Or(c.Ashift, int32(bounds.Ashift.Least)))} //nolint:gosec // less than 100
	if width := bounds.Widths[l.Redundancy]; width.Least == width.Most && width.Least > 0 {
		l.Width = width.Least
	}
	return l
}
