// Package cluster is a lab as a whole: network, control plane and nodes,
// brought up, changed and taken down together.
//
// What a cluster consists of is written to its state file before or right
// after it is made, never inferred from names. So any command may be killed at
// any moment: the next `up` completes what is there, `down` removes it.
package cluster
