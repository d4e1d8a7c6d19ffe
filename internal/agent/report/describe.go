package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/pools"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/poolclass"
	"berth.dev/berth/internal/provision"
)

// Describe returns the status of the node's StorageNode; the caller sets the times of its
// conditions.
func Describe(f Facts, s pools.Latest) v1alpha1.StorageNodeStatus {
	described, leftOut := fitted(describePools(f, s), f.Expected, s)
	return v1alpha1.StorageNodeStatus{
		Pools: described, Summary: summary(described), VolumesRevision: f.Revision,
		Features: v1alpha1.AllFeatures(), Conditions: append(describeConditions(f, s), leftOut...),
	}
}

func describePools(f Facts, s pools.Latest) []v1alpha1.Pool {
	var described []v1alpha1.Pool
	present := map[string]bool{}
	for _, p := range s.Pools {
		present[p.Name] = true
		d := describePool(p, f)
		if len(d.Classes) > 0 || len(d.Inventory) > 0 || slices.Contains(f.Expected, p.Name) || unread(p) {
			described = append(described, d)
		}
	}
	for _, name := range f.Expected {
		if !present[name] {
			present[name] = true
			described = append(described, absentPool(name, s.Silent))
		}
	}
	for _, name := range f.Remembered {
		if !present[name] {
			described = append(described, rememberedPool(name))
		}
	}
	slices.SortFunc(described, func(a, b v1alpha1.Pool) int { return compare(a.Name, b.Name) })
	return described
}

func describePool(p provision.Pool, f Facts) v1alpha1.Pool {
	items, rest := f.inventory(p)
	d := v1alpha1.Pool{
		Name:           p.Name,
		Provisioner:    v1alpha1.ProvisionerType(p.Type),
		Total:          quantity(p.Total),
		Foreign:        quantity(p.Foreign + rest),
		Inventory:      items,
		AllocationUnit: quantity(p.Unit),
		Media:          v1alpha1.Media(p.Media),
		Health:         v1alpha1.PoolHealthy,
	}
	if p.Fill != (provision.Fill{}) {
		filled := quantity(coarse(p.Fill.Data, p.Total))
		d.Filled, d.MetadataFilledPercent = &filled, int32(min(p.Fill.Metadata, 100)) //nolint:gosec // a percentage
	}
	if p.Problem != "" {
		d.Health, d.Message = v1alpha1.PoolDegraded, entries.Clip(p.Problem)
	}
	largest := int64(0)
	for _, c := range f.serving(p) {
		d.Classes = append(d.Classes, c.Name)
		largest = max(largest, poolclass.Room(&c, p))
	}
	d.LargestVolume = quantity(largest)
	d.LastChange = f.lastChange(p.Name)
	return d
}

// coarse rounds the filled bytes of a pool up to whole hundredths of it. The exact figure
// changes with every write of a pod, and each report costs the API server a write.
func coarse(filled, total int64) int64 {
	step := max(total/100, 1)
	return min((filled+step-1)/step*step, max(total, filled))
}

// missingPool describes a pool that holds volumes and is not there. The report shows it
// instead of silently leaving it out.
func missingPool(name string) v1alpha1.Pool {
	return v1alpha1.Pool{
		Name: name, Provisioner: v1alpha1.ProvisionerType(provision.TypeOf(name)),
		Total: quantity(0), Foreign: quantity(0), AllocationUnit: quantity(0), LargestVolume: quantity(0),
		Health:  v1alpha1.PoolMissing,
		Message: fmt.Sprintf("%s is not on this node although volumes are in it: check its disks", name),
	}
}

// absentPool describes a pool that the report lacks. If silent is set the pool may be there
// and not answer, so it is Degraded and not Missing.
func absentPool(name string, silent error) v1alpha1.Pool {
	p := missingPool(name)
	if silent != nil {
		p.Health, p.Message = v1alpha1.PoolDegraded, entries.Clip(fmt.Sprintf("volumes are in it, and it cannot be asked: %v", silent))
	}
	return p
}

func describeConditions(f Facts, s pools.Latest) []metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReporting, Message: "the agent lists the node's pools"}
	if s.Err != nil {
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, v1alpha1.ReasonProvisionerUnavailable, entries.Clip(s.Err.Error())
	}
	conditions := append([]metav1.Condition{ready}, silent(s)...)
	conditions = append(conditions, unwiped(s.Pools)...)
	conditions = append(conditions, managed(f.Standings)...)
	conditions = append(conditions, f.filling(s.Pools)...)
	conditions = append(conditions, exposed(s.Warnings)...)
	if n := len(f.Orphans); n > 0 {
		conditions = append(conditions, metav1.Condition{
			Type: v1alpha1.ConditionOrphaned, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNoVolumeObject,
			Message: entries.Clip(fmt.Sprintf("%d volumes or snapshots on this node are kept although no object accounts for them; `kubectl berth orphans` lists them: %s",
				n, strings.Join(slices.Sorted(maps.Keys(f.Orphans)), ", "))),
		})
	}
	return conditions
}

func quantity(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }

func compare(a, b string) int { return cmp.Compare(a, b) }
