// Package snapshot decides what a node does next about a snapshot, as package replica does about
// a replica:
//
//	Decide(snapshot, node, entry, facts) -> verb, reason, message, and the node's entry
//
// What the package guarantees:
//
//   - A snapshot is taken once. After the node has reported that it was taken, another
//     one would hold other data: if the record is gone the entry says
//     DeviceMissing. Until then it may be taken at any moment, again after a crash. An
//     adopted one is never taken: it was there before its object.
//   - A snapshot is removed only if the entry says that this very snapshot, of that volume,
//     time, size and pool, was taken: the object may come from an old backup. Any other
//     snapshot of that name is kept and reported, and the object goes without it.
//   - A snapshot counts as gone only if its pool was read and lacks it. A pool that is not
//     there proves nothing.
package snapshot
