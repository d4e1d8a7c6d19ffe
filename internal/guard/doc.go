// Package guard decides what keeps a node's part of the self-fence contract: when to renew the
// lease, when to stop the writers of which volumes, and when to leave the watchdog to its reset.
//
// Whether writers must stop is ownership's decision alone (MustStop); this package asks it before
// each renewal and adds nothing to it. All functions here are functions of values. Package keep
// gathers the values and carries the decisions out, holders finds and stops writers, watchdog has
// the device, word the socket of the agent, and lease the object on the API server.
//
// A guard is fenced from its start until the agent says that it has closed every epoch of this
// node, and again after each time that writers had to stop. A fenced guard renews nothing, and lets
// no epoch begin: a node must not look alive while it may still go on in an epoch that was given up.
package guard
