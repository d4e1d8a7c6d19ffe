// Package snapshot takes, keeps and removes the snapshots of one node: it is the Access of
// package worker to the Snapshots that bear the node's label. Package decide/snapshot decides about them.
//
// What the package guarantees, besides the guarantees of package worker and of the decisions:
//
//   - A snapshot is taken only of a volume in a pool that an administrator gave to its class.
//   - No volume is deleted while a snapshot of it is being taken: both steps hold the lock
//     of the volume. A snapshot that was taken does not need its volume.
package snapshot
