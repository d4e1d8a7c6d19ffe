package snapshot

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/agent/entries"
	"berth.dev/berth/internal/provision"
)

// takenEntry reports a snapshot that is on the node.
func takenEntry(s *v1alpha1.Snapshot, wish *v1alpha1.ReplicaSpec, record *provision.Snapshot) *v1alpha1.SnapshotReplica {
	e := &v1alpha1.SnapshotReplica{
		Node: wish.Node, Pool: record.Pool.Name, State: v1alpha1.SnapshotReady, Reason: v1alpha1.ReasonTaken,
		Taken: new(metav1.NewTime(record.Taken)), RestoreSize: entries.Bytes(record.Size), Allocated: entries.Bytes(record.Allocated),
	}
	if record.Copying {
		e.State, e.Reason = v1alpha1.SnapshotCopying, v1alpha1.ReasonCopying
		e.Message = clipped("node %s: the snapshot of volume %s was taken, and its data is being copied", wish.Node, s.Spec.Volume)
	}
	return e
}

// failedEntry reports a snapshot that is not on the node, or not the right one.
func failedEntry(s *v1alpha1.Snapshot, wish *v1alpha1.ReplicaSpec, reason, message string) *v1alpha1.SnapshotReplica {
	e := carried(s, wish.Node)
	e.Pool, e.State = wish.Pool, v1alpha1.SnapshotFailed
	e.Reason, e.Message = reason, entries.Clip(message)
	return e
}

// stuckEntry reports a snapshot that should go and cannot.
func stuckEntry(s *v1alpha1.Snapshot, node string, record *provision.Snapshot, reason, message string) *v1alpha1.SnapshotReplica {
	e := carried(s, node)
	e.Pool, e.State, e.Allocated = record.Pool.Name, v1alpha1.SnapshotFailed, entries.Bytes(record.Allocated)
	e.Reason, e.Message = reason, entries.Clip(message)
	return e
}

// lostEntry reports a snapshot that should go and whose pool is not on the node: the snapshot
// may come back with the pool.
func lostEntry(s *v1alpha1.Snapshot, old *v1alpha1.SnapshotReplica) *v1alpha1.SnapshotReplica {
	e := carried(s, old.Node)
	e.Pool, e.State, e.Reason, e.Allocated = old.Pool, v1alpha1.SnapshotFailed, v1alpha1.ReasonPoolMissing, entries.Copied(old.Allocated)
	remedy := "bring the pool back"
	if !s.DeletionTimestamp.IsZero() { // forget counts only then
		remedy += fmt.Sprintf(", or, if it is lost for good, `kubectl berth forget %s %s`", old.Node, s.Name)
	}
	e.Message = clipped("node %s: pool %s is not there, and snapshot %s cannot be removed from it: %s", old.Node, old.Pool, s.Name, remedy)
	return e
}

// keptApartEntry reports that nothing of this object is on the node, and that the node keeps
// the other snapshot of its name.
func keptApartEntry(s *v1alpha1.Snapshot, node string, record *provision.Snapshot) *v1alpha1.SnapshotReplica {
	e := goneEntry(s, node)
	e.Reason = v1alpha1.ReasonConflict
	e.Message = clipped("node %s: pool %s holds data of this name. Nothing proves that it is this object's snapshot, so it is kept", node, record.Pool.Name)
	return e
}

// goneEntry reports that nothing is left on the node. It keeps the time when the snapshot
// was taken: if the object wants it here again, the node does not take it again.
func goneEntry(s *v1alpha1.Snapshot, node string) *v1alpha1.SnapshotReplica {
	e := carried(s, node)
	e.State, e.Reason = v1alpha1.SnapshotGone, v1alpha1.ReasonRemoved
	if old := s.Entry(node); old != nil {
		e.Pool = old.Pool
	} else if wish := wishFor(s, node); wish != nil {
		e.Pool = wish.Pool
	}
	return e
}

// carried begins an entry with the fields that never change.
func carried(s *v1alpha1.Snapshot, node string) *v1alpha1.SnapshotReplica {
	e := &v1alpha1.SnapshotReplica{Node: node}
	if old := s.Entry(node); old != nil && old.Taken != nil {
		e.Taken, e.RestoreSize = old.Taken.DeepCopy(), entries.Copied(old.RestoreSize)
	}
	return e
}

func sameTaken(a, b *v1alpha1.SnapshotReplica) bool {
	return a.Taken.Equal(b.Taken) && entries.SameQuantity(a.RestoreSize, b.RestoreSize)
}

func sameEntry(a, b *v1alpha1.SnapshotReplica) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Taken, x.RestoreSize, x.Allocated = nil, nil, nil
	y.Taken, y.RestoreSize, y.Allocated = nil, nil, nil
	return x == y && sameTaken(a, b) && entries.SameQuantity(a.Allocated, b.Allocated)
}

func clipped(format string, args ...any) string { return entries.Clip(fmt.Sprintf(format, args...)) }
