package wish

import (
	"cmp"
	"fmt"
	"slices"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// laidOut asks for a pool of whole vdevs of the disks that match its class, are empty, and
// match no other pool.
func (a asked) laidOut(f Facts, m *madeAsked) Wish {
	w := ensure(m.class, provision.PoolWish{Pool: m.pool, Layout: m.layout})
	t := provision.TraitsOf(m.pool.Type)
	there := has(f.Pools, w.Pool)
	w.lost = !there && lists(f.Listed, m.pool.Name)
	disks := a.empty(f, &w, m.disks, there)
	if !there {
		w.Search = carriers(f, m.disks)
	}
	if w.lost || t.CheckLayout(m.layout) != nil {
		return w
	}
	vdevs, waiting := vdevs(disks, m.layout.Width, *t.Layouts)
	for _, p := range waiting {
		w.Remarks = append(w.Remarks, waits(p, m))
	}
	most := provision.MaxDisks / m.layout.Width
	for _, vdev := range vdevs[:min(len(vdevs), most)] {
		w.Disks = append(w.Disks, vdev...)
	}
	return w
}

// carriers returns the device nodes of the disks that match and are not empty: the pool may
// be on them. No other disks are searched, since other machines may be using those. A disk that is
// or was a volume is not searched either: a pod may have written there what looks like the pool.
func carriers(f Facts, disks *v1alpha1.DevicePools) (nodes []string) {
	for _, p := range f.Pools {
		if p.Type == provision.Device && poolclass.Selects(disks, p) && p.Problem != "" && len(p.Volumes)+len(p.Wiping) == 0 {
			nodes = append(nodes, p.Paths[0])
		}
	}
	slices.Sort(nodes)
	return nodes[:min(len(nodes), provision.MaxDisks)]
}

// vdevs forms vdevs of disks of one size, the smallest first, and returns the disks left over.
func vdevs(disks []provision.Pool, width int, bounds provision.Layouts) (vdevs [][]string, waiting []provision.Pool) {
	slices.SortFunc(disks, func(a, b provision.Pool) int {
		return cmp.Or(cmp.Compare(a.Total, b.Total), cmp.Compare(a.Name, b.Name))
	})
	for len(disks) > 0 {
		if len(disks) < width || disks[0].Total < bounds.LeastDisk || disks[width-1].Total-disks[0].Total > bounds.Differ {
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
func waits(p provision.Pool, m *madeAsked) string {
	if t := provision.TraitsOf(m.pool.Type); p.Total < t.Layouts.LeastDisk {
		return label(p) + " is too small for a " + t.OfDisks
	}
	return fmt.Sprintf("%s waits until there are %d of its size, which is a vdev of %s", label(p), m.layout.Width, m.layout.Redundancy)
}
