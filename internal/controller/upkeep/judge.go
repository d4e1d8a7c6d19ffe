package upkeep

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/usecase"
)

// assess brings a class's status in line with the nodes' reports, and says
// whether it changed.
func assess(class *v1alpha1.PoolClass, reports []v1alpha1.StorageNode) bool {
	nodes := int32(0)
	for i := range reports {
		if serves(&reports[i], class.Name) {
			nodes++
		}
	}
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, ObservedGeneration: class.Generation,
		Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonNodesServe, Message: fmt.Sprintf("%d nodes serve this class", nodes)}
	switch nodes {
	case 0:
		ready.Status, ready.Reason = metav1.ConditionFalse, v1alpha1.ReasonNoNode
		ready.Message = "no node serves this class: none that it selects has one of its pools in good health"
	case 1:
		ready.Message = "1 node serves this class"
	}
	changed := class.Status.Nodes != nodes
	class.Status.Nodes = nodes
	return meta.SetStatusCondition(&class.Status.Conditions, ready) || changed
}

// serves says whether a node has a healthy pool of a class and can be asked.
func serves(report *v1alpha1.StorageNode, class string) bool {
	if meta.IsStatusConditionFalse(report.Status.Conditions, v1alpha1.ConditionReady) {
		return false
	}
	return slices.ContainsFunc(report.Status.Pools, func(pool v1alpha1.Pool) bool {
		return pool.Health == v1alpha1.PoolHealthy && slices.Contains(pool.Classes, class)
	})
}

// problemOf returns the problem of a volume that is not as its spec asks. Lack of
// room is not one of them: the call that asks for the room tells its user.
func problemOf(v *v1alpha1.Volume, nodes usecase.Nodes) problem {
	for _, holder := range usecase.PlacedVolume(v).Holders(nodes) {
		entry := holder.Entry
		if entry != nil && entry.Failed && entry.Reason != v1alpha1.ReasonNoSpace {
			return problem{entry.Reason, entry.Message}
		}
		if v.DeletionTimestamp == nil {
			continue
		}
		if holder.Node == "" {
			return problem{v1alpha1.ReasonNodeAway, fmt.Sprintf("a Node that does not exist any more may still have the volume's data (label %s); "+
				"if it never comes back: kubectl berth forget NODE --node-is-gone", holder.Label)}
		}
		if away := nodes.Away(holder.Node); away != "" {
			message := fmt.Sprintf("node %s still has the volume's data: %s; the data is removed when the node is back", holder.Node, away)
			if nodes.Labelled(holder.Label) == "" {
				message += "; if it never comes back: kubectl berth forget " + holder.Node + " --node-is-gone"
			}
			return problem{v1alpha1.ReasonNodeAway, message}
		}
	}
	return problem{}
}
