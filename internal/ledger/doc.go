// Package ledger knows what fits where. It is told of every object that says
// something about space, and answers whether volumes fit on a node, together.
//
// # Facts
//
//	node ─► pool ─► facts, each owned by a claim, a Volume or an inline volume
//
//	free = limit(class) - foreign - sum of facts - items that only the node lists
//
// Free space is worked out from the facts on every change and never incremented
// or decremented, so no order of events can make it drift. The owner's record
// says where its facts are; a refund follows the record, never the event that
// caused it. That is why a deletion is observed by name alone.
//
// A fact is derived from statements. On each node the strongest statement counts:
//
//	Volume   the object says where its replicas are, or are to be
//	remains  a replica, or a Volume, is gone, but the node may still be
//	         clearing it away, or its data may still be there
//	hold     made by Reserve, in the name of pods
//
// A PersistentVolume is no statement: it names no pool. It says which Volume
// belongs to a claim. Once the ledger sees that Volume, it gives back the hold of
// the claim. A retained PersistentVolume keeps its charge through its Volume. Data
// without a Volume is charged through its node's inventory.
//
// A hold stands while a pod in flight holds it, or while the claim still names
// the node (a provisioner may be at work there), and until the Volume is seen.
// A hold and a Volume of one claim are never charged on one node together, and from
// Reserve on one of them always is.
//
// # Parts
//
// Each part has a state of its own, and knows only the parts above it:
//
//	shelf     the nodes, their pools, the classes, and what is charged where
//	volumes   the Volumes and PersistentVolumes: where data is, is to be, or may still be
//	accounts  the room that is held for claims and inline volumes, and the pods that hold it
//	Ledger    settles whomever a change concerns, in order, and answers requests
//
// A record derives from what was observed what its owner is to be charged. Only the shelf
// turns that into books, so no two records reckon a charge differently.
//
// # Kinds
//
// A Kind reduces a resource to two integers: the charge of a volume to a pool, and
// the limit up to which the pool may be charged. Everything else - fitting, scores,
// explanations, simulations - is written once over those. A device is a pool of its
// own, named after the disk, so that a Volume names its disk by naming its pool.
//
// # Standbys
//
// A volume may have several replicas: one on the pod's own node, and standbys, each on a
// node of its own. The pod can move only to a node that has all of its volumes, so they
// share these nodes: see Plan. Reserve holds the places of all replicas of all of a pod's
// volumes, or none. A holder of such a hold names the pod's own node, because one pod may
// hold room for several nodes on which it could run, and a standby's room may belong to
// several of them. Unreserve for a node gives back the standbys that were held for it. A
// Volume replaces the hold on each node where it has a replica.
//
// A standby that yields counts only against other standbys that yield, and takes only a
// slot that is spare. A hold yields as long as it is nothing but a standby's.
//
// # Promises
//
// Classes with different spare may share a pool. The node carves in any order, so
// the ledger places nothing that would leave less than the spare of any volume that
// is promised there and yet to be carved. With that, a scheduler that is the only
// one never sends a volume to a node that has to refuse it.
//
// Three kinds of wishes come without a Reserve: a claim whose node another process
// selected, an inline volume known from its pod alone, and a claim's wish to grow.
// The ledger decides on them itself, and charges them if they fit. A wish that does
// not fit is not charged, because no wish may close a node; its owner waits for the
// next report of the node. There is one exception: the inline volume of a bound pod
// is charged beyond the promises to others as long as its node could be making it
// at this moment. One that the node can never make is not charged at all.
//
// # Reports and Volumes
//
// Reports and Volumes travel by different watches. Three rules keep a volume from
// being counted twice or not at all between them:
//
//   - A report is atomic: total and foreign bytes are of one moment.
//   - The report's inventory lists, by owner, everything of Berth's that has no
//     Volume. An item counts unless a fact of its owner does.
//   - A report carries the revision of the Volumes that its sorting was based on.
//     When a replica is gone, or its Volume is gone before it, its fact remains until
//     a report of that revision or a later one accounts for any data that is left.
//
// A pool that is missing from a report keeps its facts and offers nothing.
//
// # Locking
//
// The package starts no goroutine, reads no clock and does no I/O. A Ledger is
// changed and asked under one mutex of its caller: Observe*, Reserve, Unreserve, Grant
// and SetSynced under the write lock, all others under the read lock. A Node and a
// Snapshot never change; they may be kept and asked (Fit, Place, Score, Explain,
// Without, Plan) by any number of goroutines without any lock. A change replaces the
// one Node it concerns.
//
// Fit on a Node that is a moment old may say yes although the room is gone by now.
// Reserve decides: it works everything out again, and takes all demands or none.
package ledger
