package ledger

// The observed objects, as far as they concern space. Callers translate; the
// ledger knows no API types. A deletion is always observed by name or UID alone:
// the last known object of a missed deletion may be stale, and the record in the
// ledger is better.

// VolumeObject is a Volume.
type VolumeObject struct {
	Name string
	// Claim is the UID of the claim it was made for; may be empty.
	Claim string
	Class string
	// Capacity that was asked for.
	Capacity int64
	// Revision of the object; 0 if it is not known.
	Revision int64
	// Replicas by node and pool: those that are wanted and those that are reported.
	Replicas []Replica
}

// Replica is one replica of a Volume.
type Replica struct {
	Node, Pool string
	State      ReplicaState
	// Actual capacity, as its node reports it; 0 while unknown.
	Actual int64
	// Taken is how much of the pool its node says it takes; 0 while unknown. It
	// replaces the ledger's own reckoning once the replica is as large as wanted.
	Taken int64
	// Yields marks a standby whose slot a primary may have.
	Yields bool
}

// ReplicaState is how far a replica has come.
type ReplicaState uint8

// The states of a replica.
const (
	// Pending: wanted, and nothing is known of it. It is charged, because its node
	// may be carving it at this moment.
	Pending ReplicaState = iota
	// Ready: it is there.
	Ready
	// Refused: its node will not make it larger than Actual.
	Refused
	// Gone: nothing of it can be used again. Its node may be clearing it away still, and
	// says so in its next report.
	Gone
)

// ClaimObject is a PersistentVolumeClaim of one of Berth's classes.
type ClaimObject struct {
	UID string
	// Class is the PoolClass its StorageClass names.
	Class string
	// Requested bytes.
	Requested int64
	// SelectedNode is the node that a scheduler has chosen for it.
	SelectedNode string
	// Bound is whether it has its PersistentVolume.
	Bound bool
}

// PVObject is a PersistentVolume of one of Berth's drivers. It names no pool, so it
// takes no room for itself: it says which Volume belongs to a claim.
type PVObject struct {
	Name string
	// Volume that it stands for: the volume handle.
	Volume string
	// Claim is the UID of the claim it is bound to or reserved for; may be empty.
	Claim string
}

// PodObject is a pod with inline volumes, or one that holds space.
type PodObject struct {
	UID, Namespace string
	// Node it is bound to; empty before.
	Node string
	// Started is whether its inline volumes exist by now.
	Started bool
	// Ended is whether it has run to its end. A pod bound and not yet started
	// has not ended.
	Ended  bool
	Inline []InlineVolume
}

// InlineVolume is one inline volume of a pod.
type InlineVolume struct {
	Name  string
	Class string
	Bytes int64
}
