// Package snapshot takes, keeps and removes the snapshots of one node.
//
// It works as package replica does, on Snapshot objects:
//
//	Decide(snapshot, node, record) -> step, reason, message
//
// What the package guarantees:
//
//   - A snapshot is taken once. After the node has said that it was taken, another
//     one would hold other data: if the record is gone the entry says
//     DeviceMissing. Until then it may be taken at any moment, again after a crash. One
//     that was adopted is never taken: it was there before its object.
//   - It is removed only on the word of the object itself, read live just before: it is being
//     deleted, or its spec no longer lists the node. And only if the entry says that this very
//     snapshot, of that volume, time, size and pool, was taken: the object may come from an old
//     backup. What else bears its name is kept and reported, and the object goes without it.
//   - It is gone if its pool says so: one that is not there says nothing.
//   - No volume is deleted while a snapshot of it is taken: both hold the lock of
//     the volume. A snapshot that is there does not need its volume.
package snapshot
