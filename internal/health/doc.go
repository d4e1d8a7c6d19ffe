// Package health serves the pages that kubelets and monitoring request from a process:
// /healthz, /readyz and /metrics.
//
// The kubelet restarts a process that is not healthy, so /healthz fails only for faults that
// a restart can repair. It does not restart a process that is not ready, so other faults, such
// as a pool that cannot be listed, make /readyz fail.
package health
