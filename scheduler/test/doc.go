// Package test runs berth-scheduler as a process of its own against a real API
// server, with the real controller, provisioner and PersistentVolume controller,
// and nodes whose agents are scripts.
package test
