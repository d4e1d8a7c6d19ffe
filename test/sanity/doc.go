// Package sanity runs the conformance suite of the Container Storage Interface
// against Berth as it is deployed, on real LVM, from a node of the lab. The same
// suite runs in one process in internal/csi/sanity.
//
// A skipped spec proves nothing, and the suite silently skips the specs of features
// that a driver does not announce. So both runs must skip exactly the specs in
// internal/csi/sanity/skipped.txt.
package sanity
