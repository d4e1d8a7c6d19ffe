// Package driver is one CSI driver of Berth as a value: its name, and all in which it differs
// from Berth's other drivers. A process serves a driver by passing the value to its parts; a
// rule asks the value whether an object is the driver's, and never compares names itself.
//
// No driver touches the objects of another one. Objects of Kubernetes name their driver, and
// the methods of Driver read it. Berth's own Volumes and Snapshots have spec.driver; View,
// Live and Guard are clients that show a process those of its driver, so that no reconciler, worker
// or use case has to ask. They belong where a driver acts. Where a node or the cluster is counted,
// the objects of all drivers count, and are read without them: the room in pools, the report of a
// node, the pools that may be made anew, the nodes that are gone.
//
// The topology key, the finalizers and the prefixes of labels are Berth's, not a driver's: they
// stay constants of the API (api/v1alpha1).
package driver
