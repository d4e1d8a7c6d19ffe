package replica

import (
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/entries"
)

// readyEntry reports a replica that is as the spec wants it.
func readyEntry(v view) *v1alpha1.ReplicaStatus {
	e := &v1alpha1.ReplicaStatus{Node: v.Node}
	e.Pool, e.State, e.Ready, e.Reason = v.Record.Pool.Name, v1alpha1.ReplicaReady, true, v1alpha1.ReasonCarved
	e.Capacity, e.Allocated = entries.Bytes(v.Record.Size), entries.Bytes(v.Record.Size)
	e.Requested = new(v.Object.Spec.Capacity.DeepCopy())
	return e
}

// foundEntry reports a replica that is as the spec wants it, with data that may be another's.
func foundEntry(v view) *v1alpha1.ReplicaStatus {
	e := readyEntry(v)
	e.Reason = v1alpha1.ReasonFound
	e.Message = entries.Clip(fmt.Sprintf("node %s: volume %s was in pool %s before the node had said anything about it: its data is used as it is",
		v.Node, v.Object.Name, v.Record.Pool.Name))
	return e
}

// copyingEntry reports a replica that takes its room and does not hold its data yet.
func copyingEntry(v view) *v1alpha1.ReplicaStatus {
	e := readyEntry(v)
	e.State, e.Ready, e.Reason = v1alpha1.ReplicaCopying, false, v1alpha1.ReasonCopying
	e.Message = entries.Clip(fmt.Sprintf("node %s: the data of %s is being copied", v.Node, nameOf(v.Record.Source)))
	return e
}

// unexpandedEntry reports a replica that works as it is but could not be brought to the
// spec. Requested tells the controller that the wish was answered.
func unexpandedEntry(v view, reason, message string) *v1alpha1.ReplicaStatus {
	e := readyEntry(v)
	e.Reason, e.Message = reason, entries.Clip(message)
	return e
}

// failedEntry reports a replica that cannot be used.
func failedEntry(v view, reason, message string) *v1alpha1.ReplicaStatus {
	e := &v1alpha1.ReplicaStatus{Node: v.Node}
	e.Pool, e.State, e.Requested = v.Wish.Pool, v1alpha1.ReplicaFailed, new(v.Object.Spec.Capacity.DeepCopy())
	e.Reason, e.Message = reason, entries.Clip(message)
	return e
}

// brokenEntry reports a replica that is where it should be and cannot be used. It
// gives the replica's size, so that the ledger does not count the room as free.
func brokenEntry(v view) *v1alpha1.ReplicaStatus {
	e := failedEntry(v, v1alpha1.ReasonDeviceMissing, fmt.Sprintf("node %s: %s", v.Node, v.Record.Problem))
	e.Capacity, e.Allocated = entries.Bytes(v.Record.Size), entries.Bytes(v.Record.Size)
	return e
}

// conflictEntry reports that something else bears the volume's name. It has no capacity, for
// nothing of this object is there. Allocated is the size of the other if that is in the wanted
// pool.
func conflictEntry(v view) *v1alpha1.ReplicaStatus {
	e := failedEntry(v, v1alpha1.ReasonConflict, v.KeptAsItIs("Volume", difference(v)))
	if v.Record.Pool.Name == v.Wish.Pool {
		e.Allocated = entries.Bytes(v.Record.Size)
	}
	return e
}

// stuckEntry reports a replica that should go and cannot.
func stuckEntry(v view, reason, message string) *v1alpha1.ReplicaStatus {
	e := &v1alpha1.ReplicaStatus{Node: v.Node}
	e.Pool, e.State = v.Record.Pool.Name, v1alpha1.ReplicaFailed
	e.Capacity, e.Allocated = entries.Bytes(v.Record.Size), entries.Bytes(v.Record.Size)
	e.Reason, e.Message = reason, entries.Clip(message)
	return e
}

// awayEntry reports a replica that should go and whose pool is not on the node: the data may
// come back with the pool. The entry keeps a capacity, which says that the data is this object's.
func awayEntry(v view) *v1alpha1.ReplicaStatus {
	e, old := &v1alpha1.ReplicaStatus{Node: v.Node}, v.Entry
	e.Pool, e.State, e.Reason = old.Pool, v1alpha1.ReplicaFailed, v1alpha1.ReasonPoolMissing
	e.Capacity, e.Allocated = entries.Copied(old.Capacity), entries.Copied(old.Allocated)
	if e.Capacity == nil {
		e.Capacity = new(v.Object.Spec.Capacity.DeepCopy())
	}
	e.Message = v.PoolIsAway("volume", old.Pool)
	return e
}

// keptApartEntry reports that nothing of this object is on the node, and that the node keeps
// the other data of its name.
func keptApartEntry(v view) *v1alpha1.ReplicaStatus {
	e := goneEntry(v)
	e.Reason = v1alpha1.ReasonConflict
	e.Message = entries.Clip(fmt.Sprintf("node %s: pool %s holds data of this name. Nothing proves that it belongs to this object, so it is kept", v.Node, v.Record.Pool.Name))
	return e
}

// goneEntry reports that nothing is left on the node.
func goneEntry(v view) *v1alpha1.ReplicaStatus {
	e := &v1alpha1.ReplicaStatus{Node: v.Node, State: v1alpha1.ReplicaGone, Reason: v1alpha1.ReasonRemoved}
	if v.Entry != nil {
		e.Pool = v.Entry.Pool
	} else if v.Wish != nil {
		e.Pool = v.Wish.Pool
	}
	return e
}

// same compares quantities by value: the API server may write them in another form.
func same(a, b *v1alpha1.ReplicaStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Capacity, x.Allocated, x.Requested = nil, nil, nil
	y.Capacity, y.Allocated, y.Requested = nil, nil, nil
	return x == y && entries.SameQuantity(a.Capacity, b.Capacity) && entries.SameQuantity(a.Allocated, b.Allocated) &&
		entries.SameQuantity(a.Requested, b.Requested)
}
