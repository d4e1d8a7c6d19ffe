// Package conformance is the test suite that every provisioner passes: the one in memory,
// each real one, and each of them across poold's socket.
package conformance
