// Package cluster is a lab as a whole: network, control plane and nodes,
// brought up, changed and taken down together.
//
// A [Lab] makes, opens and removes clusters. A [Cluster] keeps what its parts share. The parts are
// small values that point to it: its [ControlPlane], each [Node], its [SAN] and its [SharedDisks]. A
// command that takes the lock reads the state anew, so no part has a copy of it.
//
// Each part of a cluster is written to the cluster's state file before or right
// after it is made, and never inferred from names. So any command may be killed at
// any moment: the next `up` completes the cluster, `down` removes it.
package cluster
