package wish

import (
	"cmp"
	"fmt"
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

const (
	// leastDisk is the smallest disk that a zpool is made of. ZFS refuses those of less than
	// 64 MiB only after it has labelled them.
	leastDisk = 128 << 20
	// sameSize is how much the disks of one vdev may differ; ZFS refuses more.
	sameSize = 16 << 20
)

func (a *asked) askZpool(class, name string, c *v1alpha1.ZpoolCreation) {
	ref := provision.PoolRef{Type: provision.ZFS, Name: provision.ZFSPrefix + name}
	a.ask(madeAsked{pool: ref, class: class, disks: &c.Disks, zpool: zpoolOf(c)})
}

// zpoolOf returns how a class wants its zpool made.
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

// zpool asks for a zpool of whole vdevs of the disks that match its class, are empty, and
// match no other pool.
func (a asked) zpool(f Facts, m *madeAsked) Wish {
	w := ensure(m.class, provision.PoolWish{Pool: m.pool, Zpool: m.zpool})
	there := has(f.Pools, w.Pool)
	w.lost = !there && lists(f.Listed, m.pool.Name)
	disks := a.empty(f, &w, m.disks, there)
	if !there {
		w.Search = carriers(f, m.disks)
	}
	if w.lost || m.zpool.Check() != nil {
		return w
	}
	vdevs, waiting := vdevs(disks, m.zpool.Width)
	for _, p := range waiting {
		w.Remarks = append(w.Remarks, waits(p, m.zpool))
	}
	most := provision.MaxDisks / m.zpool.Width
	for _, vdev := range vdevs[:min(len(vdevs), most)] {
		w.Disks = append(w.Disks, vdev...)
	}
	return w
}

// carriers returns the device nodes of the disks that match and are not empty: the zpool may
// be on them. No other disks are searched, since other machines may be using those.
func carriers(f Facts, disks *v1alpha1.DevicePools) (nodes []string) {
	for _, p := range f.Pools {
		if p.Type == provision.Device && poolclass.Selects(disks, p) && p.Problem != "" && len(p.Paths) > 0 {
			nodes = append(nodes, p.Paths[0])
		}
	}
	slices.Sort(nodes)
	return nodes[:min(len(nodes), provision.MaxDisks)]
}

// vdevs forms vdevs of disks of one size, the smallest first, and returns the disks left over.
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
