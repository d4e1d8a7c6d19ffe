// Package sanity runs the upstream csi-sanity suite against the whole driver in
// one process: the controller on a real API server, an agent with an agent's
// token, and pools and mounts in memory. No root is needed.
//
// skipped.txt lists the specs that the suite skips because the driver does not
// announce what they need. A spec that begins to be skipped, or stops to be,
// fails the test until the list says so.
package sanity
