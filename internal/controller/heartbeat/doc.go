// Package heartbeat tells which nodes can be expected to answer.
//
// A node is away when its Node object says so, or when its agent no longer renews its
// Lease. The age of the last renewal is measured on this process's clock, from the
// moment when it saw the Lease change: clocks of nodes are not compared. A controller
// that has just started therefore trusts every agent for the length of one Lease.
//
// Being away proves nothing about the node's data. It only decides which nodes a
// caller does not wait for.
package heartbeat
