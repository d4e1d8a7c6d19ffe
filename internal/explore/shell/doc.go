// Package shell plays the product itself. Package explore plays the rules of ownership; here the shells that
// carry them out run, in one process, against a cluster that is simulated.
//
// Real are the Owner of the agent with its loop and journal, the guard with its lease, oversight with its
// contact, watches, queue and workers, places, and the answers of nodes to peers; for copies also the agent's
// pools, and both ends of a stream. Simulated are the API server (compare-and-swap, UIDs, watches that are late,
// break and list anew, answers that are lost, older records that come back), the shared disks (package simdisk)
// or the pools (package memory), the kernels with mounts, pages and commands on their way, the watchdogs, the
// kubelets, the pods, the scheduler, and the machines with their boots.
//
// # Time and order
//
// The shells have goroutines, timers and queues of their own. They run as they are, in a bubble of
// testing/synctest: time is virtual and passes at once when all goroutines wait. Each effect takes a time that
// follows from the seed, from the process, and from how often it did the same before, to the nanosecond. So
// hardly any two things happen in one moment, and the moments give them an order: a seed gives the same story
// again. Stepping the shells' functions from a scheduler would be stricter, and would leave out their loops,
// which is where shells make mistakes. A dead process goes on until its next effect, which it does not have.
//
// Effects may fail before or after they have happened. Between the moment in which one is asked for, the one
// in which it happens, and the one in which it is answered, anything else may happen: a machine sleeps, or
// loses its power.
//
// Everything is in test files: this package is no part of the product, and imports all of its rings.
package shell
