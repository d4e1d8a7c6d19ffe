// Package worker holds the one worker that carries out the decisions about a node's replicas and
// about its snapshots: it locks, reads, makes, removes, keeps and reports. A placed.Kind holds the
// decisions about one kind of object. An Access reads its objects, reports on them, and makes and
// deletes their data. Packages replica and snapshot have one Access each.
//
// What the package guarantees, for both kinds:
//
//   - A step is taken under the lock of the object's name.
//   - Data is removed only if the object itself, read live just before, says so: it is being
//     deleted, or its spec no longer lists the node. An event of the watch proves nothing;
//     losing the label looks like a deletion. Data whose object is gone is an orphan.
//   - Data that should go counts as gone only if its pool was read, or an administrator gave it up.
//   - An entry is written only if it says something new, and only to the object that decided it.
//
// A restart at any point loses nothing: the worker finds the record again, and the same decision
// follows. One fact is only in memory: that this process made the data. Without it, after a
// restart, the worker keeps data that it could have removed.
package worker
