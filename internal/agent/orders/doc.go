// Package orders has a node's orders for shared disks that a controller attaches: they are in the status of the
// node's StorageNode, which outlives the agent and the machine.
package orders
