// Package controller is the process behind `berth controller`: the CSI identity
// and controller services, and the reconcilers.
//
// # Who may run at once
//
// Any number of processes may run. The reconcilers run in one of them, chosen by
// leader election. The CSI services run in all: each serves the sidecars of its
// own pod over a socket, and the sidecars elect among themselves which of them
// makes calls. That needs no second election here, and two sidecars that
// both believe to lead do no harm:
//
//   - a volume's object bears a name that follows from the CSI name, so that the
//     second create finds the first;
//   - every other write is a compare-and-swap on that object, so that the slower
//     of two calls reads again and goes on from what the faster one wrote;
//   - a process keeps nothing in memory that another one would need.
//
// Nor need the process that serves a call be the one whose reconcilers run: the
// call waits for events of the object, whoever caused them.
//
// # Reading
//
// Berth's own objects and StorageClasses are watched whole; Nodes, PersistentVolumes, claims
// and pods cut down to what is used; Leases in Berth's own namespace. Whatever a deletion is
// decided by is read from the API server, one object at a time. After the start nothing is
// listed there.
package controller
