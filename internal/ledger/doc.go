// Package ledger knows what fits where. It is told of every object that says
// something about space, and answers whether volumes fit on a node, together.
//
// # Facts
//
//	node ─► pool ─► facts, each owned by a claim, a Volume or an inline volume
//
//	free = limit(class) - foreign - sum of facts - what only the node lists
//
// Free space is worked out from the facts on every change and never incremented
// or decremented, so no order of events can make it drift. The owner's record
// says where its facts are; a refund follows the record, never the event that
// caused it. That is why a deletion is observed by name alone.
//
// A fact is derived from statements, of which the strongest on a node counts:
//
//	Volume   the object says where its replicas are, or are to be
//	remains  of a replica, or a Volume, that went: the node may be clearing
//	         it away, or its data may still be there
//	hold     made by Reserve, in the name of pods
//
// A PersistentVolume is no statement: it names no pool. It says which Volume is a
// claim's, so that what was held for the claim is given back once that Volume is seen.
// One that is retained keeps its charge through its Volume, and data without a
// Volume is charged by its node's inventory.
//
// A hold stands while a pod in flight holds it, or while the claim still names
// the node (a provisioner may be at work there), and until the Volume is seen.
// A hold and a Volume of one claim are never charged on one node together, and
// from Reserve on there is no moment at which neither is.
//
// # Kinds
//
// A Kind turns what it knows of a resource into two integers: what a volume takes
// of a pool, and up to where the pool may be taken. Everything else - fitting,
// scores, explanations, simulations - is written once over those. A device is a
// pool of its own, named after the disk, so that a Volume names its disk by
// naming its pool.
//
// # Promises
//
// Classes with different spare may share a pool. The node carves in any order,
// so nothing is placed that would leave less than the spare of anything which is
// promised there and yet to be carved. With that, a scheduler which is alone
// never sends a volume to a node that has to refuse it.
//
// What nobody chose a pool for gets one here: a claim whose node was selected by
// others, an inline volume known from its pod alone, a wish of a claim for more.
// It is charged if it fits. If it does not, the owner waits for the next report
// of the node, because no wish may close a node. The inline volume of a bound pod
// is charged beyond what was promised to others as long as its node could be making
// it at this moment; one that the node can never make is not charged at all.
//
// # Reports and Volumes
//
// Reports and Volumes travel by different watches. Three rules keep a volume from
// being counted twice or not at all between them:
//
//   - A report is atomic: total and foreign bytes are of one moment.
//   - What is Berth's and has no Volume is in the report's inventory, by owner. It
//     counts unless a fact of that owner does.
//   - A report bears the revision of the Volumes its sorting was based on. When a
//     replica is gone, or its Volume went before it was, its fact remains until a
//     report of that revision or a later one has spoken for what may be left.
//
// A pool that is missing from a report keeps its facts and offers nothing.
//
// # Who locks
//
// The package starts no goroutine, reads no clock and does no I/O. A Ledger is
// changed and asked under one mutex of its caller: Observe*, Reserve, Unreserve
// and SetSynced under the write lock, Node, Request, Snapshot, Pools and Room under
// the read lock. A Node and a Snapshot never change; they may be kept
// and asked (Fit, Place, Score, Explain, Without) by any number of goroutines
// without any lock. A change replaces the one Node it concerns.
//
// Fit on a Node that is a moment old may say yes to what is gone by now. Reserve
// decides: it works everything out again, and takes all demands or none.
package ledger
