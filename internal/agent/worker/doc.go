// Package worker holds the one worker that carries out the decisions about a node's replicas and
// about its snapshots: it locks, reads, makes, removes, keeps and reports. A Kind tells it how an
// object of its kind is read and reported on, which decisions package decide has for it, and how
// the provisioner makes and deletes its data. Packages replica and snapshot are the two kinds.
//
// What the package guarantees, for both kinds:
//
//   - A step is taken under the lock of the object's name.
//   - Data is removed only if the object itself, read live just before, says so: it is being
//     deleted, or its spec no longer lists the node. An event of the watch proves nothing;
//     losing the label looks like a deletion. Data whose object is gone is an orphan.
//   - A missing record counts as missing data only if the data's pool was read.
//   - An entry is written only if it says something new, and only to the object that decided it.
//
// A restart at any point loses nothing: the worker finds the record again, and the same decision
// follows. One fact is only in memory: that this process made the data. Without it, after a
// restart, the worker keeps data that it could have removed.
package worker
