package snapshot

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/decide/entries"
)

// presentEntry reports a snapshot that is on the node, usable or not.
func presentEntry(v view) *v1alpha1.SnapshotReplica {
	e := takenEntry(v)
	if v.Record.Problem != "" {
		e.State, e.Reason = v1alpha1.SnapshotFailed, v1alpha1.ReasonDeviceMissing
		e.Message = clipped("node %s: %s", v.Node, v.Record.Problem)
	}
	return e
}

// takenEntry reports a snapshot that is on the node.
func takenEntry(v view) *v1alpha1.SnapshotReplica {
	record := v.Record
	e := &v1alpha1.SnapshotReplica{
		Node: v.Node, Pool: record.Pool.Name, State: v1alpha1.SnapshotReady, Reason: v1alpha1.ReasonTaken,
		Taken: new(metav1.NewTime(record.Taken)), RestoreSize: entries.Bytes(record.Size), Allocated: entries.Bytes(record.Allocated),
	}
	if record.Copying {
		e.State, e.Reason = v1alpha1.SnapshotCopying, v1alpha1.ReasonCopying
		e.Message = clipped("node %s: the snapshot of volume %s was taken, and its data is being copied", v.Node, v.Object.Spec.Volume)
	}
	return e
}

// failedEntry reports a snapshot that is not on the node, or not the right one.
func failedEntry(v view, reason, message string) *v1alpha1.SnapshotReplica {
	e := carried(v)
	e.Pool, e.State = v.Wish.Pool, v1alpha1.SnapshotFailed
	e.Reason, e.Message = reason, entries.Clip(message)
	return e
}

// stuckEntry reports a snapshot that should go and cannot.
func stuckEntry(v view, reason, message string) *v1alpha1.SnapshotReplica {
	e := carried(v)
	e.Pool, e.State, e.Allocated = v.Record.Pool.Name, v1alpha1.SnapshotFailed, entries.Bytes(v.Record.Allocated)
	e.Reason, e.Message = reason, entries.Clip(message)
	return e
}

// awayEntry reports a snapshot that should go and whose pool is not on the node: the snapshot
// may come back with the pool.
func awayEntry(v view) *v1alpha1.SnapshotReplica {
	e, old := carried(v), v.Entry
	e.Pool, e.State, e.Reason, e.Allocated = old.Pool, v1alpha1.SnapshotFailed, v1alpha1.ReasonPoolMissing, entries.Copied(old.Allocated)
	e.Message = v.PoolIsAway("snapshot", old.Pool)
	return e
}

// keptApartEntry reports that nothing of this object is on the node, and that the node keeps
// the other snapshot of its name.
func keptApartEntry(v view) *v1alpha1.SnapshotReplica {
	e := goneEntry(v)
	e.Reason = v1alpha1.ReasonConflict
	e.Message = clipped("node %s: pool %s holds data of this name. Nothing proves that it is this object's snapshot, so it is kept", v.Node, v.Record.Pool.Name)
	return e
}

// goneEntry reports that nothing is left on the node. It keeps the time when the snapshot
// was taken: if the object wants it here again, the node does not take it again.
func goneEntry(v view) *v1alpha1.SnapshotReplica {
	e := carried(v)
	e.State, e.Reason = v1alpha1.SnapshotGone, v1alpha1.ReasonRemoved
	if v.Entry != nil {
		e.Pool = v.Entry.Pool
	} else if v.Wish != nil {
		e.Pool = v.Wish.Pool
	}
	return e
}

// carried begins an entry with the fields that never change.
func carried(v view) *v1alpha1.SnapshotReplica {
	e := &v1alpha1.SnapshotReplica{Node: v.Node}
	if old := v.Entry; old != nil && old.Taken != nil {
		e.Taken, e.RestoreSize = old.Taken.DeepCopy(), entries.Copied(old.RestoreSize)
	}
	return e
}

func sameTaken(a, b *v1alpha1.SnapshotReplica) bool {
	return a.Taken.Equal(b.Taken) && entries.SameQuantity(a.RestoreSize, b.RestoreSize)
}

// same compares times and quantities by value: the API server may write them in another form.
func same(a, b *v1alpha1.SnapshotReplica) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Taken, x.RestoreSize, x.Allocated = nil, nil, nil
	y.Taken, y.RestoreSize, y.Allocated = nil, nil, nil
	return x == y && sameTaken(a, b) && entries.SameQuantity(a.Allocated, b.Allocated)
}

func clipped(format string, args ...any) string { return entries.Clip(fmt.Sprintf(format, args...)) }
