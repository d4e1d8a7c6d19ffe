// Package e2e tests Berth as a user sees it: installed from its chart on a real
// Kubernetes, with claims and pods, on real volume groups.
//
// The tests carry the build tag e2e and expect a cluster with Berth on it:
// make test-e2e brings both up. They share the cluster, each in a namespace of
// its own, and leave nothing behind.
package e2e
