// Package replica carries out the replicas of one node: it is the Access of package worker to the
// Volumes that bear the node's label. Package decide/replica decides about them. The outcome of
// each step is in the node's own entry of status.replicas, written with one server-side apply.
//
// What the package guarantees, besides the guarantees of package worker and of the decisions:
//
//   - A replica is made only in a pool that an administrator gave to its class.
//   - A volume is not deleted while it is mounted or bound into a pod.
//   - A filesystem is made only on a replica that was reported.
package replica
