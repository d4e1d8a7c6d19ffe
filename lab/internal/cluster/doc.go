// Package cluster is a lab as a whole: network, control plane and nodes,
// brought up, changed and taken down together.
//
// Each part of a cluster is written to the cluster's state file before or right
// after it is made, and never inferred from names. So any command may be killed at
// any moment: the next `up` completes the cluster, `down` removes it.
package cluster
