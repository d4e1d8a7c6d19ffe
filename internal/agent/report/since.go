package report

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/orphans"
)

// place identifies an item in the inventories.
type place struct{ pool, volume, snapshot string }

// dated gives each orphan its deadline, and the time since when it is an orphan, from the
// previous report. Only the report stores that time: if the report is lost, orphans stay
// longer.
func dated(before, next []v1alpha1.Pool, retention time.Duration, now time.Time) []v1alpha1.Pool {
	known := map[place]metav1.Time{}
	each(before, func(at place, o *v1alpha1.Orphan) { known[at] = o.Since })
	each(next, func(at place, o *v1alpha1.Orphan) {
		since, old := known[at]
		if !old {
			since = metav1.NewTime(now.Truncate(time.Second)) // as precise as it is stored
		}
		o.Since = since
		if retention > 0 && o.Reason == v1alpha1.OrphanNoObject {
			deadline := metav1.NewTime(since.Add(retention))
			o.Deadline = &deadline
		}
	})
	return next
}

// Orphans returns the volumes and the snapshots that a report has as orphans; n is nil if
// there is no report.
func Orphans(n *v1alpha1.StorageNode) (volumes, snapshots map[string]orphans.Orphan) {
	volumes, snapshots = map[string]orphans.Orphan{}, map[string]orphans.Orphan{}
	if n == nil {
		return volumes, snapshots
	}
	each(n.Status.Pools, func(at place, o *v1alpha1.Orphan) {
		why := orphans.Orphan{Reason: o.Reason, Message: o.Message}
		if at.volume != "" {
			volumes[at.volume] = why
		} else {
			snapshots[at.snapshot] = why
		}
	})
	return volumes, snapshots
}

func each(pools []v1alpha1.Pool, visit func(place, *v1alpha1.Orphan)) {
	for _, p := range pools {
		for _, i := range p.Inventory {
			if i.Orphan != nil {
				visit(place{p.Name, i.Volume, i.Snapshot}, i.Orphan)
			}
		}
	}
}
