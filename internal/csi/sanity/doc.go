// Package sanity runs the upstream csi-sanity suite against the whole driver in
// one process: the controller on a real API server, an agent with an agent's
// token, and pools and mounts in memory. No root is needed.
//
// skipped.txt lists the specs that the suite skips because the driver does not
// announce the capability that they need. If the suite skips another spec, or no longer
// skips one, the test fails until the list says so.
package sanity
