package report

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/entries"
	"berth.dev/berth/internal/provision"
)

// What the schema of a pool allows.
const (
	maxInventory  = 256
	maxFilesystem = 32
	maxName       = 63
)

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
// the report: volumes, then all snapshots, since nobody reckons by Snapshot objects,
// then what is being wiped.
// What the list has no place for is returned as a sum: it counts as foreign, so that
// nobody takes it for free.
func (f Facts) inventory(p provision.Pool) (items []v1alpha1.InventoryItem, rest int64) {
	for _, v := range p.Volumes {
		if !f.Accounted[replica{v.ID, p.Name}] {
			items = append(items, f.volume(v))
		}
	}
	for _, s := range p.Snapshots {
		i := v1alpha1.InventoryItem{Snapshot: s.ID, Allocated: quantity(s.Allocated)}
		i.Orphan = f.orphan(s.ID, s.Size, s.Filesystem, s.Volume)
		items = append(items, i)
	}
	items = append(items, beingWiped(p)...)
	if len(items) > maxInventory {
		for _, i := range items[maxInventory:] {
			rest += i.Allocated.Value()
		}
		items = items[:maxInventory]
	}
	return items, rest
}

func (f Facts) volume(v provision.Volume) v1alpha1.InventoryItem {
	i := v1alpha1.InventoryItem{Allocated: quantity(v.Size)}
	if v.Inline != (provision.Inline{}) {
		i.Inline = &v1alpha1.InlineReference{PodUID: types.UID(v.Inline.PodUID), Name: v.Inline.Name}
		return i
	}
	i.Volume = v.ID
	filesystem := v.Filesystem
	if provision.IsDataset(v.Device) { // also before it was in use
		filesystem = provision.Dataset
	}
	i.Orphan = f.orphan(v.ID, v.Size, filesystem, cmp.Or(v.Source.Snapshot, v.Source.Volume))
	return i
}

// orphan is what to tell of an orphan, but for the times; nil for what is none.
func (f Facts) orphan(name string, size int64, filesystem, source string) *v1alpha1.Orphan {
	why, orphaned := f.Orphans[name]
	if !orphaned {
		return nil
	}
	if filesystem == provision.Raw { // which is none
		filesystem = ""
	}
	return &v1alpha1.Orphan{
		Reason: why.Reason, Message: entries.Clip(why.Message), Size: quantity(size),
		Filesystem: bounded(filesystem, maxFilesystem), Source: bounded(source, maxName),
	}
}

// bounded keeps what somebody may have written beside the data from making the report
// one that the API server refuses.
func bounded(s string, length int) string { return s[:min(len(s), length)] }
