// Package memory is a provisioner whose pools are in memory: for simulations,
// for tests of everything above a provisioner, and as the simplest example of a
// provisioner.
//
// Disks hold the data that a real node keeps on its disks. They outlive the
// Provisioner: New can make another one over them. A Disturbance adds latency and
// faults; Crash is one that ends the process at a numbered effect.
package memory
