// Package report tells the cluster what a node has to offer: its StorageNode,
// its CSIStorageCapacity objects, and the heartbeat that says that its agent is
// alive.
//
// The published objects are a function of the pools, the classes and the node's
// labels:
//
//	Describe(facts, snapshot) -> pools and conditions of the StorageNode
//	Capacities(facts, snapshot) -> one object per StorageClass that the node serves
//
// The report's inventory lists, by owner, the data of Berth in a pool that no Volume
// accounts for. The report bears the revision of the Volumes that this list is based
// on. The agent answers a deletion that may have left data behind with a report of
// that revision or a later one (Revisions).
//
// The agent publishes the first change at once and further ones at most once a second. It
// writes only objects that differ from the published ones. Other components do not poll the
// node, and a node's cost does not grow with the cluster.
//
// The agent publishes capacity, and not the external-provisioner: the central controller
// of the external-provisioner asks once a minute for every pair of node and class, and
// was minutes behind on a thousand nodes.
package report
