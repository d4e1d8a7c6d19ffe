// Package report tells the cluster what a node has to offer: its StorageNode,
// its CSIStorageCapacity objects, and the heartbeat that says that its agent is
// alive.
//
// What is published is a function of the pools, the classes and the node's
// labels:
//
//	Describe(facts, snapshot) -> pools and conditions of the StorageNode
//	Capacities(facts, snapshot) -> one object per StorageClass that the node serves
//
// What a pool holds of Berth's and no Volume accounts for is in the report's
// inventory, by owner. The report bears the revision of the Volumes that it was
// sorted by; a deletion that may have left data behind is answered by a report
// of that revision or a later one (Revisions).
//
// A change is published at once, then at most once a second, and only where it
// differs from what was published before. Nobody polls the node, and a node's
// cost does not grow with the cluster.
//
// Capacity is the agent's and not the external-provisioner's to publish: its
// central controller asks for every pair of node and class, once a minute, and
// was minutes behind on a thousand nodes.
package report
