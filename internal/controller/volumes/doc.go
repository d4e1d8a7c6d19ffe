// Package volumes creates, deletes and expands volumes.
//
// A use case writes what is wanted into the Volume object and then waits for
// the node's answer in the object's status. It hears of the answer from the
// informer's events, never by polling, and returns as soon as the answer is
// there. Nothing is kept in memory that matters: every call can be cut off at
// any point, and the same call made again, by this process or another, goes on
// from what the object says.
//
// # Writes
//
//	use case  call made for the first time            call repeated
//	Create    create                                  none, or one update that places it again,
//	                                                  one that publishes what a scheduler reserved
//	Delete    delete                                  none
//	Expand    update of spec.capacity                 none
//
// The agent adds one apply of its status entry. Labels and the finalizer are
// part of the create, so that the reconcilers find nothing to correct.
//
// Two calls for one volume do not run side by side in one process: the second
// gets ErrBusy. Between processes the object's resourceVersion does the same.
//
// # Placing a volume again
//
// A volume that never answered Create may be moved to another node: the pod was
// rescheduled, or the node refused. Its spec then stops naming the old node,
// but the old node's label stays until that node has reported its replica Gone.
// A volume that a PersistentVolume refers to has answered and is never moved.
//
// # Copies
//
// A volume with a source goes into the pool that has the source, or nowhere. The
// source is looked up when the volume is placed and not again: once the node has
// answered, the volume does not need it. Where a scheduler that knows of no sources has chosen another
// node, the volume is made beside its source all the same, and the scheduler follows. Only CreateVolume makes such a volume; what
// a scheduler has reserved without the source never passes for it, and makes way.
//
// # Older data
//
// A node may have data of a volume's name that is older than its object, or that an older
// backup does not know. No first Volume is made where the ledger lists such data as an orphan.
// Where a node has found it since, the Volume is not moved, and is no mere reservation.
package volumes
