// Package volumes creates, deletes and expands volumes.
//
// A use case writes its request into the Volume object and then waits for the node's
// answer in the object's status. The informer's events bring the answer, never
// polling, and the call returns as soon as the answer is there. No state that matters
// is kept in memory: every call can be cut off at any point. The same call made
// again, by this process or another, goes on from the object.
//
// # Writes
//
//	use case  call made for the first time            call repeated
//	Create    create                                  none, or one update that places it again,
//	                                                  one that publishes a scheduler's reservation
//	Delete    delete                                  none
//	Expand    update of spec.capacity                 none
//
// The agent adds one apply of its status entry. Labels and the finalizer are
// part of the create, so that the reconcilers find nothing to correct.
//
// Two calls for one volume do not run at the same time in one process: the second
// gets ErrBusy. Between processes the object's resourceVersion does the same.
//
// # Placing a volume again
//
// A volume that Create never returned may be moved to another node: the pod was
// rescheduled, or the node refused. Its spec then stops naming the old node, but the
// old node's label stays until that node has reported its replica Gone. Create has
// returned a volume that a PersistentVolume refers to, so that volume is never moved.
//
// # Copies
//
// A volume with a source goes into the pool that has the source, or nowhere. The source is looked
// up when the volume is placed and not again: once the node has answered, the volume does not
// need it. If a scheduler that does not know of sources has chosen another node, the volume is
// still made beside its source, and the scheduler follows. Only CreateVolume makes such a volume.
// A reservation that a scheduler made without the source is never used for it, and makes way.
//
// # Older data
//
// A node may have data of a volume's name that is older than the volume's object, or that an
// older backup of the API server does not know. Where the ledger lists such data as an orphan,
// no first Volume is made. Where a node finds such data later, the Volume is not moved, and
// does not count as a mere reservation.
package volumes
