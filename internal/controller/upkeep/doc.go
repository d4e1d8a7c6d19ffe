// Package upkeep holds the reconcilers that keep Berth's objects tidy.
//
//	reconciler   writes                                       never
//	Volumes      finalizer, labels, entries that are Gone,    data: it only lets go of data
//	             condition Ready                              that nodes report Gone, or of
//	                                                          nodes that administrators forget
//	Snapshots    finalizer, labels                            data, as above
//	Claims       deletes Volumes that nothing was carved for  a Volume that has, or had, data
//	Reservations deletes Volumes that were made for a pod     a Volume that CreateVolume
//	             and never used, or takes them off their      has returned, or of which a node
//	             node; takes the mark off those of which a    has found data
//	             node has found data
//	StorageNodes deletes reports of Nodes that are gone       anything on the node
//	Capacities   deletes the capacities of silent agents      a StorageNode: it keeps the
//	                                                          last report of the node
//	PoolClasses  status                                       spec
//
// Each decision is a function of the object and a few facts. Every write is a
// compare-and-swap, so a stale cache costs a retry and nothing else. A volume
// that was created and became ready at once is never written here.
//
// # Volumes whose claim is gone
//
// A Volume that a scheduler made is marked as reserved until CreateVolume returns it. Until
// then no pod can have used its storage, so the Volume goes with its claim, carved or not.
// Data that a node has found may be older than the mark, so the mark then comes off.
//
// The claim of any other Volume may be deleted before CreateVolume has answered. The Volume
// then has no PersistentVolume, and no caller asks for it again. If no node was found for
// the Volume, it goes with its claim. If a node was found and nothing is carved, the Volume
// is deleted after a delay: without the delay a running CreateVolume would make it again
// and again, and never get its answer. If something is carved, the Volume is kept and says
// Orphaned: it is not recorded whether CreateVolume ever answered. An administrator who
// moves data to another claim by hand causes the same state for a while: no claim and no
// PersistentVolume. Recording the answer would cost every volume one more write.
package upkeep
