// Package sanity runs the conformance suite of the Container Storage Interface
// against Berth as it is deployed, on real LVM, from a node of the lab. The same
// suite runs in one process in internal/csi/sanity.
//
// A spec that is skipped proves nothing, and the suite skips silently what a
// driver does not announce. So both runs are held to one list of skipped specs,
// internal/csi/sanity/skipped.txt.
package sanity
