package notice

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
)

// Reasons of events about pools, in addition to those of the StorageNode's conditions. The event
// of a change that Berth made to a pool has the reason "Pool" followed by that of the change.
const (
	ReasonNotManaged  = "PoolsNotAsAsked"
	actionManaged     = "Managed"
	actionWatched     = "Watched"
	reasonPool        = "Pool"
	reasonAwaitsDisks = "AwaitsDisks" // no news: not every node has disks
)

// poolNotices returns the notices about a node's pools.
func poolNotices(n *v1alpha1.StorageNode, now time.Time) (notices []Notice) {
	for _, p := range n.Status.Pools {
		if c := p.LastChange; c != nil && now.Sub(c.At.Time) < fresh {
			event := poolEvent(n.Name, p.Name, string(c.Reason), c.At.Unix())
			notices = append(notices, tell(event, corev1.EventTypeNormal, actionManaged, reasonPool+string(c.Reason), c.Message))
		}
		notices = append(notices, fillNotices(n.Name, p)...)
	}
	c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionPoolsManaged)
	if c != nil && c.Status == metav1.ConditionFalse && c.Reason != reasonAwaitsDisks {
		event := poolEvent(n.Name, "", c.Reason, c.LastTransitionTime.Unix())
		notices = append(notices, tell(event, corev1.EventTypeWarning, actionManaged, ReasonNotManaged, c.Message))
	}
	return notices
}

// fillNotices returns the notices about a thin pool that has passed a threshold. Each
// threshold is told once, and again if the pool passes it again when the event is gone.
func fillNotices(node string, p v1alpha1.Pool) (notices []Notice) {
	total := p.Total.Value()
	if p.Filled == nil || total <= 0 || len(p.Classes) == 0 {
		return nil
	}
	data := int(p.Filled.Value() / max(total/100, 1)) // the agent reports it in hundredths
	for _, of := range []struct {
		what    string
		percent int
	}{{"data", data}, {"metadata", int(p.MetadataFilledPercent)}} {
		reason, level := v1alpha1.ReasonThinPoolFilling, v1alpha1.FillingPercent
		if of.percent >= v1alpha1.NearlyFullPercent {
			reason, level = v1alpha1.ReasonThinPoolNearlyFull, v1alpha1.NearlyFullPercent
		}
		if of.percent < level {
			continue
		}
		notices = append(notices, tell(poolEvent(node, p.Name+"/"+of.what, reason, 0), corev1.EventTypeWarning, actionWatched, reason,
			fmt.Sprintf("the %s of thin pool %s is filled to %d%% or more; writes stop when it is full: extend it, or let its PoolClass autoExtend it",
				of.what, p.Name, level)))
	}
	return notices
}

func poolEvent(node, pool, reason string, at int64) string {
	return nameOf("pool", "%s/%s/%s/%d", reason, node, pool, at)
}
