package replica

import (
	"fmt"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/entries"
	"berth.dev/berth/internal/provision"
)

// readyEntry reports a replica that is as the spec wants it.
func readyEntry(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, record *provision.Volume) *v1alpha1.ReplicaStatus {
	e := carried(v, wish.Node)
	e.Pool = record.Pool.Name
	e.State = v1alpha1.ReplicaReady
	e.Ready = true
	e.Capacity, e.Allocated = entries.Bytes(record.Size), entries.Bytes(record.Size)
	e.Requested = new(v.Spec.Capacity.DeepCopy())
	e.Reason = v1alpha1.ReasonCarved
	return e
}

// foundEntry reports a replica that is as the spec wants it, with data that may be another's.
func foundEntry(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, record *provision.Volume) *v1alpha1.ReplicaStatus {
	e := readyEntry(v, wish, record)
	e.Reason = v1alpha1.ReasonFound
	e.Message = entries.Clip(fmt.Sprintf("node %s: volume %s was in pool %s before the node had said anything about it: its data is used as it is",
		wish.Node, v.Name, record.Pool.Name))
	return e
}

// copyingEntry reports a replica that takes its room and does not hold its data yet.
func copyingEntry(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, record *provision.Volume) *v1alpha1.ReplicaStatus {
	e := readyEntry(v, wish, record)
	e.State, e.Ready, e.Reason = v1alpha1.ReplicaCopying, false, v1alpha1.ReasonCopying
	e.Message = entries.Clip(fmt.Sprintf("node %s: the data of %s is being copied", wish.Node, nameOf(record.Source)))
	return e
}

// keptEntry reports a replica that works as it is but could not be brought to the
// spec. Requested tells the controller that the wish was answered.
func keptEntry(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, record *provision.Volume, reason, message string) *v1alpha1.ReplicaStatus {
	e := readyEntry(v, wish, record)
	e.Reason, e.Message = reason, entries.Clip(message)
	return e
}

// failedEntry reports a replica that cannot be used.
func failedEntry(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, reason, message string) *v1alpha1.ReplicaStatus {
	e := carried(v, wish.Node)
	e.Pool = wish.Pool
	e.State = v1alpha1.ReplicaFailed
	e.Requested = new(v.Spec.Capacity.DeepCopy())
	e.Reason, e.Message = reason, entries.Clip(message)
	return e
}

// unusableEntry reports a replica that is where it should be and cannot be used. It
// gives the replica's size, so that the ledger does not count the room as free.
func unusableEntry(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, record *provision.Volume, reason, message string) *v1alpha1.ReplicaStatus {
	e := failedEntry(v, wish, reason, message)
	e.Capacity, e.Allocated = entries.Bytes(record.Size), entries.Bytes(record.Size)
	return e
}

// conflictEntry reports that something else bears the volume's name. It has no capacity, for
// nothing of this object is there. Allocated is the size of the other if that is in the wanted
// pool.
func conflictEntry(v *v1alpha1.Volume, wish *v1alpha1.ReplicaSpec, record *provision.Volume, message string) *v1alpha1.ReplicaStatus {
	e := failedEntry(v, wish, v1alpha1.ReasonConflict, message)
	if record.Pool.Name == wish.Pool {
		e.Allocated = entries.Bytes(record.Size)
	}
	return e
}

// stuckEntry reports a replica that should go and cannot.
func stuckEntry(v *v1alpha1.Volume, node string, record *provision.Volume, reason, message string) *v1alpha1.ReplicaStatus {
	e := carried(v, node)
	e.Pool = record.Pool.Name
	e.State = v1alpha1.ReplicaFailed
	e.Capacity, e.Allocated = entries.Bytes(record.Size), entries.Bytes(record.Size)
	e.Reason, e.Message = reason, entries.Clip(message)
	return e
}

// lostEntry reports a replica that should go and whose pool is not on the node: the data may
// come back with the pool. The entry keeps a capacity, which says that the data is this object's.
func lostEntry(v *v1alpha1.Volume, old *v1alpha1.ReplicaStatus) *v1alpha1.ReplicaStatus {
	e := carried(v, old.Node)
	e.Pool, e.State, e.Reason = old.Pool, v1alpha1.ReplicaFailed, v1alpha1.ReasonPoolMissing
	e.Capacity, e.Allocated = entries.Copied(old.Capacity), entries.Copied(old.Allocated)
	if e.Capacity == nil {
		e.Capacity = new(v.Spec.Capacity.DeepCopy())
	}
	remedy := "bring the pool back"
	if !v.DeletionTimestamp.IsZero() { // forget counts only then
		remedy += fmt.Sprintf(", or, if it is lost for good, `kubectl berth forget %s %s`", old.Node, v.Name)
	}
	e.Message = entries.Clip(fmt.Sprintf("node %s: pool %s is not there, and volume %s cannot be removed from it: %s", old.Node, old.Pool, v.Name, remedy))
	return e
}

// keptApartEntry reports that nothing of this object is on the node, and that the node keeps
// the other data of its name.
func keptApartEntry(v *v1alpha1.Volume, node string, record *provision.Volume) *v1alpha1.ReplicaStatus {
	e := goneEntry(v, node)
	e.Reason = v1alpha1.ReasonConflict
	e.Message = entries.Clip(fmt.Sprintf("node %s: pool %s holds data of this name. Nothing proves that it belongs to this object, so it is kept", node, record.Pool.Name))
	return e
}

// goneEntry reports that nothing is left on the node.
func goneEntry(v *v1alpha1.Volume, node string) *v1alpha1.ReplicaStatus {
	e := &v1alpha1.ReplicaStatus{Node: node, State: v1alpha1.ReplicaGone, Reason: v1alpha1.ReasonRemoved}
	if old := v.Entry(node); old != nil {
		e.Pool = old.Pool
	} else if wish := wishFor(v, node); wish != nil {
		e.Pool = wish.Pool
	}
	return e
}

// carried begins an entry with the fields that this package does not decide.
func carried(v *v1alpha1.Volume, node string) *v1alpha1.ReplicaStatus {
	e := &v1alpha1.ReplicaStatus{Node: node}
	if old := v.Entry(node); old != nil {
		e.Active, e.UnstagedEpoch = old.Active, old.UnstagedEpoch
	}
	return e
}

// sameEntry compares quantities by value: the API server may write them in
// another form.
func sameEntry(a, b *v1alpha1.ReplicaStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Capacity, x.Allocated, x.Requested = nil, nil, nil
	y.Capacity, y.Allocated, y.Requested = nil, nil, nil
	return x == y && entries.SameQuantity(a.Capacity, b.Capacity) && entries.SameQuantity(a.Allocated, b.Allocated) &&
		entries.SameQuantity(a.Requested, b.Requested)
}
