package schedule

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/ledger"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// report converts a StorageNode. away is empty, or the reason why its agent cannot be
// expected to answer: its volumes then stay charged, and nothing new is placed there.
func report(n *v1alpha1.StorageNode, away string) ledger.Report {
	r := ledger.Report{
		Node:       n.Name,
		Generation: revision(n.Status.VolumesRevision),
		Ready:      away == "" && !meta.IsStatusConditionFalse(n.Status.Conditions, v1alpha1.ConditionReady),
		Features:   n.Status.Features,
		Pools:      make([]ledger.Pool, 0, len(n.Status.Pools)),
	}
	for i := range n.Status.Pools {
		r.Pools = append(r.Pools, pool(&n.Status.Pools[i]))
	}
	return r
}

// pool converts a pool of a report. A pool of an unknown provisioner has no kind: the
// ledger does not believe it, and places nothing there.
func pool(p *v1alpha1.Pool) ledger.Pool {
	out := ledger.Pool{
		Name:    p.Name,
		Kind:    provision.TraitsOf(string(p.Provisioner)).Kind,
		Total:   p.Total.Value(),
		Foreign: p.Foreign.Value(),
		Unit:    max(p.AllocationUnit.Value(), 1),
		Media:   string(p.Media),
		Health:  health(p.Health),
		Classes: p.Classes,

		Filled: value(p.Filled), FilledMetadata: int(p.MetadataFilledPercent),
	}
	for i := range p.Inventory {
		out.Inventory = append(out.Inventory, item(&p.Inventory[i]))
	}
	return out
}

// health converts the health of a pool. An unknown word of a newer agent counts as degraded.
func health(h v1alpha1.PoolHealth) ledger.Health {
	switch h {
	case v1alpha1.PoolHealthy:
		return ledger.Healthy
	case v1alpha1.PoolMissing:
		return ledger.Missing
	default:
		return ledger.Degraded
	}
}

func item(i *v1alpha1.InventoryItem) ledger.Item {
	owner := ledger.Volume(i.Volume)
	switch {
	case i.Inline != nil:
		owner = ledger.Inline(string(i.Inline.PodUID), i.Inline.Name)
	case i.Snapshot != "":
		owner = ledger.VolumeSnapshot(i.Snapshot)
	}
	return ledger.Item{Owner: owner, Taken: i.Allocated.Value(), Orphan: i.Orphan != nil}
}

// class converts a PoolClass.
func class(c *v1alpha1.PoolClass) ledger.Class {
	l := poolclass.Limits(c)
	out := ledger.Class{Name: c.Name, Spare: l.Spare, SparePercent: l.SparePercent, Overprovision: l.Overprovision, MaxFill: l.MaxFill}
	if c.Spec.InlineVolumes != nil {
		out.InlineNamespaces = c.Spec.InlineVolumes.Namespaces
	}
	if disks := c.Spec.Devices; disks != nil {
		out.Media = string(disks.Media)
	}
	return out
}

func value(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.Value()
}

// revision returns a resourceVersion as a number, or 0 if it is no number. The API
// promises that the versions of one resource compare as numbers.
func revision(resourceVersion string) int64 {
	n, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}
