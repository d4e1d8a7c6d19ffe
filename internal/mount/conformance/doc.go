// Package conformance is the suite every mounter passes, in memory, on a real
// kernel and across poold's socket.
package conformance
