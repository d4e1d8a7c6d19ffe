// Package sanity runs the conformance suite of the Container Storage Interface
// against Berth as it is deployed, on real LVM, from a node of the lab. The same
// suite runs in one process in internal/csi/sanity.
//
// A spec that is skipped proves nothing, and the suite skips silently what a
// driver does not announce. So each run is held to its list of skipped specs:
// skipped.txt has those of snapshots too, which the deployed driver does not announce
// before real pools have them.
package sanity
