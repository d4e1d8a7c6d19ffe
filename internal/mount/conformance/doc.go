// Package conformance is the test suite that every mounter passes, in memory, on a real
// kernel and across poold's socket.
package conformance
