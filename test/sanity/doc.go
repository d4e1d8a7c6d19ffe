// Package sanity runs the conformance suite of the Container Storage Interface
// against Berth's driver, twice: in one process on the in-memory provisioner and
// a real API server, and deployed, on real LVM, from a node of the lab.
//
// A spec that is skipped proves nothing, and the suite skips silently what a
// driver does not announce. So the names of the skipped specs are kept in
// testdata, and a run that skips anything else fails.
package sanity
