// Package replica decides what a node does next about its replica of a volume:
//
//	Decide(volume, node, entry, facts) -> verb, reason, message, and the node's entry
//
// What the package guarantees:
//
//   - A replica whose entry was Ready is never made again. If its record is gone,
//     the entry says DeviceMissing: an empty volume in the place of data would
//     be worse than none.
//   - A replica that is made from a source is ready only once it holds the data. If it is
//     lost before that, it may be made again: no pod could use it, and the source
//     is still there.
//   - Data is removed only if it is proved to be the data of that object. The name is no
//     proof: the object may come from an old backup, and the data may be newer than that. One
//     proof is the node's own entry, if it says that the data is in the pool where it is. The
//     other is that no pod can have used the data. All other data is kept and reported as an
//     orphan, and the object goes without it. An orphan is deleted if it is forgotten (package
//     orphan) and there still is no object.
//   - Data that was there before the node had reported anything on the object is reported as
//     Found and used as it is. Berth neither formats a reservation nor gives it to a pod, and
//     records it when a pod gets a raw block volume. So a reservation with a filesystem or
//     with that record is Found, too.
//   - A node that is taken out of the spec removes its data only if the Volume is a
//     reservation. A volume that CreateVolume may have returned is kept: an old backup does
//     not tell whether it was used.
//   - Data counts as gone only if its pool was read and lacks it. A pool that is not there
//     proves nothing, whatever the process remembers: the entry says PoolMissing until the
//     pool is back, or an administrator gives the data up.
//   - A volume with copies on several nodes is left alone: package ownership decides about it.
//   - An adopted volume is neither made nor formatted: its data was there before.
package replica
