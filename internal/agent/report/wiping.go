package report

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/entries"
	"berth.dev/berth/internal/provision"
)

// beingWiped lists deleted volumes that are not wiped yet. It lists them although a Volume
// may still account for them: the ledger counts each once, and there is no moment in which
// the Volume is gone and its room seems free. They cannot be adopted, and so are no orphans.
func beingWiped(p provision.Pool) (items []v1alpha1.InventoryItem) {
	for _, v := range p.Wiping {
		items = append(items, Facts{}.volume(v))
	}
	return items
}

// unwiped is the condition of a node on which deleted volumes cannot be wiped.
func unwiped(pools []provision.Pool) (conditions []metav1.Condition) {
	var failures []string
	bytes := int64(0)
	for _, p := range pools {
		for _, v := range p.Wiping {
			if v.Problem != "" {
				bytes += v.Size
				failures = append(failures, fmt.Sprintf("%s in pool %s (%s)", v.ID, p.Name, v.Problem))
			}
		}
	}
	if len(failures) == 0 {
		return nil
	}
	room := quantity(bytes)
	return []metav1.Condition{{
		Type: v1alpha1.ConditionUnwiped, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonWipingFails,
		Message: entries.Clip(fmt.Sprintf("%s that deleted volumes left cannot be wiped and so given to others; it is tried again: %s",
			room.String(), strings.Join(failures, ", "))),
	}}
}
