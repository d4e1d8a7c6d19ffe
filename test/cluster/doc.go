// Package cluster drives a real Kubernetes with Berth on it for the end-to-end
// tests, the demonstration and the benchmarks: claims, pods, commands in pods,
// commands on nodes, and waiting by watch.
//
// Waiting never polls and never sleeps: Await lists once and then watches, so a
// time that is measured with it is the time at which the object changed.
package cluster
