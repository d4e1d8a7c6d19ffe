// Package replica carries out the replicas of one node.
//
// It watches the Volumes that bear the node's label, compares each with the
// provisioner's record, takes one step, and reports what came of it in the
// node's own entry of status.replicas, with one server-side apply.
//
// The decision is a function of three values:
//
//	Decide(volume, node, facts) -> step, reason, message
//
// so a restart at any point loses nothing: the record is found again, and the
// same decision follows. Of what is remembered one thing counts, that this process made a
// replica; once it is lost, data is kept that could have gone.
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
//     it is being deleted, or its spec no longer lists the node. An event of the watch proves
//     nothing; losing the label looks like a deletion.
//   - It is removed only if it is proved to be the data of that object. The name does not prove
//     it: the object may come from an old backup, and the data from what was done since. What proves
//     it is the node's own entry, which says that the data is in the pool where it is; or that
//     nobody can have used it. All else is kept, told as an orphan, and the object goes without
//     it. An orphan goes if it is forgotten (package orphans), and there still is no object.
//   - Data that was there before the node had said anything of the object is reported as Found
//     and used as it is. A reservation is not formatted, nor is it given to a pod, which is
//     recorded with a raw block volume; so what bears either is found too.
//   - A node that is taken out of the spec removes a reservation alone. What CreateVolume may
//     have returned is kept: an old backup does not tell whether it was used.
//   - Data is gone if its pool says so. A pool that is not there says nothing, whatever the
//     process remembers: the entry says PoolMissing until it is back, or is given up.
//   - An adopted volume is neither made nor formatted: its data was there before.
//   - An entry is written only if it says something new.
package replica
