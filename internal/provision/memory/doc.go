// Package memory is a provisioner whose pools are in memory: for simulations,
// for tests of everything above a provisioner, and as the plainest statement of
// what a provisioner does.
//
// Disks hold what a real node's disks would: they outlive the Provisioner, which
// can be made anew over them. A Disturbance adds latency and faults; Crash is
// one that ends the process at a numbered effect.
package memory
