// Package replica carries out the replicas of one node.
//
// It watches the Volumes that bear the node's label, compares each with the
// provisioner's record, takes the one step that package decide/replica names, and reports the
// outcome in the node's own entry of status.replicas, with one server-side apply.
//
// The decision is a function of volume, node and facts, so a restart at any point loses nothing:
// the worker finds the record again, and the same decision follows. One fact is only in memory:
// that this process made a replica. Without it, after a restart, the worker keeps data that it
// could have removed.
//
// What the package guarantees, besides the guarantees of the decision:
//
//   - Data is removed only if the object itself, read live just before, says so:
//     it is being deleted, or its spec no longer lists the node. An event of the watch proves
//     nothing; losing the label looks like a deletion.
//   - An entry is written only if it says something new.
package replica
