// Package worker holds the common parts of the workers of a node's replicas and of its
// snapshots: how long they wait, whom they notify, how they handle a step that failed, and
// when they may delete data that its object does not want, or that has no object.
//
// Only packages replica and snapshot know the kind of the object, its wish and the
// provisioner's record.
package worker
