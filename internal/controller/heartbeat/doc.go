// Package heartbeat tells which nodes can be expected to answer.
//
// A node is away when its Node object says so or when its agent has stopped to
// renew its Lease. How long ago that was is measured on this process's clock,
// from when it saw the Lease change: clocks of nodes are not compared. A
// controller that has just started therefore believes every agent for the
// length of one Lease.
//
// Being away proves nothing about the node's data. It only decides whom not to
// wait for.
package heartbeat
