// Package controller is the process behind `berth controller`: the CSI identity
// and controller services, and the reconcilers.
//
// # Who may run at once
//
// Any number of processes may run. The reconcilers run in one of them, chosen by
// leader election. The oversight of volumes with replicas and the signing of nodes'
// certificates run in all (see the packages oversight and certificates). The CSI services
// run in all: each serves the sidecars of its own pod over a socket, and the sidecars elect
// among themselves which of them makes calls. The services need no second election here.
// Two sidecars that both believe that they lead do no harm:
//
//   - a volume's object bears a name that follows from the CSI name, so that the
//     second create finds the first;
//   - every other write is a compare-and-swap on that object, so that the slower
//     of two calls reads again and goes on from the write of the faster one;
//   - a process keeps nothing in memory that another one would need.
//
// The process that serves a call need not be the one that runs the reconcilers: the
// call waits for events of the object, and any process may have caused them.
//
// # Drivers
//
// Each driver has controllers of its own, and those of all drivers may run beside each other: they elect
// their leaders and manage their fields under different names, and touch no volume of another driver. What
// there is one of in a cluster is the business of the driver of pools: pools and their classes, the reports
// of nodes, reservations, and claims whose node is gone.
//
// # Reading
//
// The process watches Berth's own objects and StorageClasses whole. Of Nodes,
// PersistentVolumes, claims and pods the cache keeps the used fields only. Leases are
// watched in Berth's own namespace, and requests for certificates of Berth's own signer. An object that decides about a deletion is read from the
// API server, one object at a time. After the start the process lists nothing there.
package controller
