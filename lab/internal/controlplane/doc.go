// Package controlplane runs etcd, the API server, the controller manager and
// the scheduler in the network namespace of a lab.
//
// They are four processes and not one, so that a test can kill each alone. The
// programs may be self-built or official ones; both take the same arguments.
// Kubernetes notices the loss of a node within 50 seconds and evicts its pods 3 seconds later.
package controlplane
