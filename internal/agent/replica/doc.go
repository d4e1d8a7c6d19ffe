// Package replica carries out the replicas of one node.
//
// It watches the Volumes that bear the node's label, compares each with the
// provisioner's record, takes one step, and reports what came of it in the
// node's own entry of status.replicas, with one server-side apply.
//
// The decision is a function of three values:
//
//	Decide(volume, node, record) -> step, reason, message
//
// so a restart at any point loses nothing: the record is found again, and the
// same decision follows. Nothing is remembered that cannot be lost.
//
// What the package guarantees:
//
//   - A replica whose entry was Ready is never made again. If its record is gone,
//     the entry says DeviceMissing: an empty volume in the place of data would
//     be worse than none.
//   - A replica that is made from a source is ready only once it holds the data. One
//     that was lost before may be made again: nobody could use it, and the source
//     is there still.
//   - Data is removed only on the word of the object itself, read live just before:
//     it is being deleted, or its spec no longer lists a node whose entry it
//     has. An event of the watch proves nothing; losing the label looks like a
//     deletion. An object that is gone or does not know of the replica leaves the
//     data where it is, and the orphan is reported. It goes if it is forgotten (package
//     orphans), and there still is no object.
//   - An adopted volume is neither made nor formatted: its data was there before.
//   - An entry is written only if it says something new.
package replica
