// Package upkeep holds the reconcilers that keep Berth's objects tidy.
//
//	reconciler   writes                                       never
//	Volumes      finalizer, labels, entries that are Gone,    data: it only lets go of
//	             condition Ready                              what its nodes report Gone, or
//	                                                          nodes that administrators forget
//	Snapshots    finalizer, labels                            data, as above
//	Claims       deletes Volumes that nothing was carved for  a Volume that has, or had, data
//	Reservations deletes Volumes that were made for a pod,    a Volume that CreateVolume
//	             and that nobody took; takes the mark off     has returned, or of which a node
//	             those of which a node has found data         has found data
//	StorageNodes deletes reports of Nodes that are gone       anything on the node
//	Capacities   deletes what silent agents have published    a StorageNode: what a node
//	                                                          was last seen to have is known
//	PoolClasses  status                                       spec
//
// Each decision is a function of the object and a few facts. Every write is a
// compare-and-swap, so a stale cache costs a retry and nothing else. A volume
// that was created and became ready at once is never written here.
//
// # Volumes whose claim is gone
//
// A Volume that a scheduler made is marked as reserved until CreateVolume returns
// it. So long nobody can have used what was made for it, and it goes with its claim, carved
// or not. What a node has found may be older than the mark, which then comes off.
//
// Of any other a claim may be deleted before CreateVolume has answered. Its Volume
// then has no PersistentVolume and nobody asks for it again. If no node was found
// for it, it goes with its claim. If a node was and nothing is carved it is deleted
// after a delay: a CreateVolume that is under way would make it again and again,
// and never have its answer. If something is carved, the Volume is kept and says
// Orphaned: whether CreateVolume ever answered is recorded nowhere, and the same
// picture, no claim and no PersistentVolume, is what an administrator sees in the
// middle of moving data to another claim by hand. Recording the answer would cost
// every volume one more write.
package upkeep
