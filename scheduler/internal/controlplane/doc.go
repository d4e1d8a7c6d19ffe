// Package controlplane starts the processes that take part in scheduling a pod -
// the scheduler, the provisioner and the controller manager - for the tests and the
// benchmarks that need them as processes of their own. It starts no API server; the
// tests and the benchmarks bring one.
package controlplane
