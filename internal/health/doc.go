// Package health serves what kubelets and monitoring ask of a process: /healthz, /readyz
// and /metrics.
//
// What is not healthy is restarted, so /healthz fails only for what a restart can mend.
// What is not ready is left alone: a pool that cannot be listed belongs there.
package health
