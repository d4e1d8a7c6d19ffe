package report

import (
	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/provision"

	"k8s.io/apimachinery/pkg/types"
)

// maxInventory is what the schema of a pool allows.
const maxInventory = 256

// replica is a volume in a pool of this node.
type replica struct{ volume, pool string }

// accountedFor are the replicas that Volumes place on a node or report there.
// Whoever reckons by Volumes counts those, so the node must not list them.
func accountedFor(volumes []v1alpha1.Volume, node string) map[replica]bool {
	accounted := map[replica]bool{}
	for i := range volumes {
		v := &volumes[i]
		for _, r := range v.Spec.Replicas {
			if r.Node == node {
				accounted[replica{v.Name, r.Pool}] = true
			}
		}
		for _, e := range v.Status.Replicas {
			if e.Node == node && e.State != v1alpha1.ReplicaGone {
				accounted[replica{v.Name, e.Pool}] = true
			}
		}
	}
	return accounted
}

// inventory lists what is Berth's in a pool and is in no Volume, in the order of
// the report: volumes, then all snapshots, since nobody reckons by Snapshot objects.
// What the list has no place for is returned as a sum: it counts as foreign, so that
// nobody takes it for free.
func inventory(p provision.Pool, accounted map[replica]bool) (items []v1alpha1.InventoryItem, rest int64) {
	for _, v := range p.Volumes {
		if !accounted[replica{v.ID, p.Name}] {
			items = append(items, item(v))
		}
	}
	for _, s := range p.Snapshots {
		items = append(items, v1alpha1.InventoryItem{Snapshot: s.ID, Allocated: quantity(s.Allocated)})
	}
	if len(items) > maxInventory {
		for _, i := range items[maxInventory:] {
			rest += i.Allocated.Value()
		}
		items = items[:maxInventory]
	}
	return items, rest
}

func item(v provision.Volume) v1alpha1.InventoryItem {
	i := v1alpha1.InventoryItem{Allocated: quantity(v.Size)}
	if v.Inline == (provision.Inline{}) {
		i.Volume = v.ID
	} else {
		i.Inline = &v1alpha1.InlineReference{PodUID: types.UID(v.Inline.PodUID), Name: v.Inline.Name}
	}
	return i
}
