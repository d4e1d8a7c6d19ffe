package report

import (
	"cmp"

	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/provision"
)

// The limits of a pool's schema.
const (
	maxInventory  = 256
	maxFilesystem = 32
	maxName       = 63
	maxClaim      = 317
)

// replica is a volume in a pool of this node.
type replica struct{ volume, pool string }

// accountedFor returns the replicas that Volumes place on a node or report there. The
// ledger charges those by their Volumes, so the node must not list them.
func accountedFor(volumes []v1alpha1.Volume, node string) map[replica]bool {
	accounted := map[replica]bool{}
	for i := range volumes {
		v := &volumes[i]
		if r := v.Wish(node); r != nil {
			accounted[replica{v.Name, r.Pool}] = true
		}
		if e := v.Entry(node); e != nil && e.State != v1alpha1.ReplicaGone {
			accounted[replica{v.Name, e.Pool}] = true
		}
	}
	return accounted
}

// inventory lists the data of Berth in a pool that is in no Volume, in the order of the
// report: volumes, then all snapshots, since the ledger does not count Snapshot objects,
// then volumes that are being wiped. It returns the size of the items that the list has no
// place for as a sum: it counts as foreign, so that the ledger does not take it for free.
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
	filesystem := cmp.Or(v.Content.Tree, v.Filesystem) // a tree is one also before it was in use
	i.Orphan = f.orphan(v.ID, v.Size, filesystem, cmp.Or(v.Source.Snapshot, v.Source.Volume))
	if i.Orphan != nil && len(v.Claim) <= maxClaim {
		i.Orphan.Claim = v.Claim
	}
	return i
}

// orphan returns the report of an orphan, without the times; nil if the data is no orphan.
func (f Facts) orphan(name string, size int64, filesystem, source string) *v1alpha1.Orphan {
	why, orphaned := f.Orphans[name]
	if !orphaned {
		return nil
	}
	if filesystem == provision.Raw { // raw means that there is none
		filesystem = ""
	}
	return &v1alpha1.Orphan{
		Reason: why.Reason, Message: entries.Clip(why.Message), Size: quantity(size),
		Filesystem: bounded(filesystem, maxFilesystem), Source: bounded(source, maxName),
	}
}

// bounded cuts a text that is recorded beside the data. Another program may have written
// a longer one there, for which the API server would refuse the whole report.
func bounded(s string, length int) string { return s[:min(len(s), length)] }
