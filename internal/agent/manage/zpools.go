package manage

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/poolclass"
	"berth.dev/berth/internal/provision"
)

const (
	// leastDisk is the smallest disk that a zpool is made of. ZFS refuses those of less than
	// 64 MiB only after it has labelled them.
	leastDisk = 128 << 20
	// sameSize is how much the disks of one vdev may differ; ZFS refuses more.
	sameSize = 16 << 20
)

type zpoolAsked struct {
	class string
	disks *v1alpha1.DevicePools
	zpool provision.Zpool
}

func (a *asked) askZpool(class, name string, c *v1alpha1.ZpoolCreation) {
	ref := provision.PoolRef{Type: provision.ZFS, Name: provision.ZFSPrefix + name}
	asked := &zpoolAsked{class, &c.Disks, zpoolOf(c)}
	switch z := a.zpools[ref.Name]; {
	case z == nil:
		a.zpools[ref.Name] = asked
	case z.zpool != asked.zpool:
		a.refuse(class, ref, z.class, "another layout")
	case !equality.Semantic.DeepEqual(z.disks, asked.disks):
		a.refuse(class, ref, z.class, "other disks")
	}
}

// zpoolOf is how a class has its zpool made.
func zpoolOf(c *v1alpha1.ZpoolCreation) provision.Zpool {
	z := provision.Zpool{Layout: provision.ZpoolLayout(c.Layout), Width: int(c.Width), Ashift: int(cmp.Or(c.Ashift, provision.MinZpoolAshift))}
	switch c.Layout {
	case v1alpha1.ZpoolStripe:
		z.Width = 1
	case v1alpha1.ZpoolMirror:
		z.Width = 2
	}
	return z
}

// zpool asks for a zpool of whole vdevs of the disks that match, and are empty and nobody
// else's.
func (a asked) zpool(f Facts, name string) Wish {
	z := a.zpools[name]
	w := Wish{PoolWish: provision.PoolWish{Pool: provision.PoolRef{Type: provision.ZFS, Name: name}, Zpool: z.zpool}, Class: z.class}
	there := has(f.Pools, w.Pool)
	w.lost = !there && lists(f.Listed, name)
	disks := a.empty(f, &w, z.disks, there)
	if !there {
		w.Search = carriers(f, z.disks)
	}
	if w.lost || z.zpool.Check() != nil {
		return w
	}
	vdevs, waiting := vdevs(disks, z.zpool.Width)
	for _, p := range waiting {
		w.Remarks = append(w.Remarks, waits(p, z.zpool))
	}
	most := provision.MaxDisks / z.zpool.Width
	for _, vdev := range vdevs[:min(len(vdevs), most)] {
		w.Disks = append(w.Disks, vdev...)
	}
	return w
}

// carriers are the nodes of the disks that match and are not empty: a zpool may be on them.
// On others it is not searched for, since other machines may be using what is on those.
func carriers(f Facts, disks *v1alpha1.DevicePools) (nodes []string) {
	for _, p := range f.Pools {
		if p.Type == provision.Device && poolclass.Selects(disks, p) && p.Problem != "" && len(p.Paths) > 0 {
			nodes = append(nodes, p.Paths[0])
		}
	}
	slices.Sort(nodes)
	return nodes[:min(len(nodes), provision.MaxDisks)]
}

// vdevs forms vdevs of disks of one size, the smallest first, and returns what is left.
func vdevs(disks []provision.Pool, width int) (vdevs [][]string, waiting []provision.Pool) {
	slices.SortFunc(disks, func(a, b provision.Pool) int {
		return cmp.Or(cmp.Compare(a.Total, b.Total), cmp.Compare(a.Name, b.Name))
	})
	for len(disks) > 0 {
		if len(disks) < width || disks[0].Total < leastDisk || disks[width-1].Total-disks[0].Total > sameSize {
			waiting, disks = append(waiting, disks[0]), disks[1:]
			continue
		}
		var vdev []string
		for _, p := range disks[:width] {
			vdev = append(vdev, p.Name)
		}
		vdevs, disks = append(vdevs, vdev), disks[width:]
	}
	return vdevs, waiting
}

// waits says what an empty disk waits for.
func waits(p provision.Pool, z provision.Zpool) string {
	if p.Total < leastDisk {
		return label(p) + " is too small for a zpool"
	}
	return fmt.Sprintf("%s waits until there are %d of its size, which is a vdev of %s", label(p), z.Width, z.Layout)
}
