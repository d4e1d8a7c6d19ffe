package controllertest

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/quantity"
)

// carry changes the pool as a volume's spec asks and returns the entry that the agent
// would report, or nil if it has nothing to say.
func (n *Node) carry(v *v1alpha1.Volume) *v1alpha1.ReplicaStatus {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mute[v.Name] {
		return nil
	}
	wanted := false
	for _, replica := range v.Spec.Replicas {
		wanted = wanted || replica.Node == n.Name
	}
	if wanted && v.DeletionTimestamp == nil {
		return n.provide(v)
	}
	if n.inUse[v.Name] && n.held[v.Name] > 0 {
		return &v1alpha1.ReplicaStatus{
			State: v1alpha1.ReplicaFailed, Reason: v1alpha1.ReasonInUse, Message: "node " + n.Name + ": the device is open",
			Capacity: new(amount(n.held[v.Name])),
		}
	}
	delete(n.held, v.Name)
	if !wanted && v.Entry(n.Name) == nil {
		return nil // an agent adds no entry where the spec does not name it
	}
	return &v1alpha1.ReplicaStatus{State: v1alpha1.ReplicaGone, Reason: v1alpha1.ReasonRemoved}
}

func (n *Node) provide(v *v1alpha1.Volume) *v1alpha1.ReplicaStatus {
	need, has := roundUp(v.Spec.Capacity.Value()), n.held[v.Name]
	entry := &v1alpha1.ReplicaStatus{Requested: new(v.Spec.Capacity)}
	switch free := n.free(); {
	case n.failure[0] != "":
		entry.Reason, entry.Message = n.failure[0], n.failure[1]
	case need-has > free:
		n.refusals++
		entry.Reason = v1alpha1.ReasonNoSpace
		entry.Message = fmt.Sprintf("node %s: pool %s has %s free, %s asked", n.Name, Pool, quantity.Bytes(free), quantity.Bytes(need-has))
	default:
		has = max(has, need)
		n.held[v.Name] = has
		entry.Reason = v1alpha1.ReasonCarved
	}
	entry.State = v1alpha1.ReplicaFailed
	if has > 0 {
		entry.State, entry.Ready, entry.Capacity = v1alpha1.ReplicaReady, true, new(amount(has))
	}
	return entry
}

func (n *Node) free() int64 {
	free := n.total
	for _, bytes := range n.held {
		free -= bytes
	}
	return free
}

func roundUp(n int64) int64 { return (n + 4*Mi - 1) / (4 * Mi) * (4 * Mi) }

func same(old, next *v1alpha1.ReplicaStatus) bool {
	if old == nil || old.State != next.State || old.Reason != next.Reason || old.Message != next.Message {
		return false
	}
	return value(old.Capacity) == value(next.Capacity) && value(old.Requested) == value(next.Requested)
}

func value(q *resource.Quantity) int64 {
	if q == nil {
		return 0
	}
	return q.Value()
}
