package report

import (
	"berth.dev/berth/api/v1alpha1"
	apply "berth.dev/berth/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"berth.dev/berth/internal/decide/entries"
)

func appliedInventory(items []v1alpha1.InventoryItem) []*apply.InventoryItemApplyConfiguration {
	var applied []*apply.InventoryItemApplyConfiguration
	for _, i := range items {
		item := apply.InventoryItem().WithAllocated(i.Allocated)
		switch {
		case i.Inline != nil:
			item.WithInline(apply.InlineReference().WithPodUID(i.Inline.PodUID).WithName(i.Inline.Name))
		case i.Snapshot != "":
			item.WithSnapshot(i.Snapshot)
		default:
			item.WithVolume(i.Volume)
		}
		item.Orphan = appliedOrphan(i.Orphan)
		applied = append(applied, item)
	}
	return applied
}

func appliedOrphan(o *v1alpha1.Orphan) *apply.OrphanApplyConfiguration {
	if o == nil {
		return nil
	}
	applied := apply.Orphan().WithSince(o.Since).WithReason(o.Reason).WithSize(o.Size)
	applied.Message = entries.Given(o.Message)
	applied.Deadline = o.Deadline.DeepCopy()
	applied.Filesystem = entries.Given(o.Filesystem)
	applied.Claim = entries.Given(o.Claim)
	applied.Source = entries.Given(o.Source)
	return applied
}
