// Package snapshot takes, keeps and removes the snapshots of one node. It works as package replica
// does, on Snapshot objects and with the decisions of package decide/snapshot.
//
// What the package guarantees, besides the guarantees of the decision:
//
//   - A snapshot is removed only if its object, read live just before, says so: it is being
//     deleted, or its spec no longer lists the node.
//   - No volume is deleted while a snapshot of it is being taken: both steps hold the lock
//     of the volume. A snapshot that was taken does not need its volume.
package snapshot
