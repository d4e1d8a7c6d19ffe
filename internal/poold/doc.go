// Package poold is the node's root-only part: the provisioner and the mounter of
// one node behind one interface, in this process or across a unix socket.
//
// The agent works with a Node. NewLocal joins a provisioner and a mounter in
// the same process. Dial reaches those of a poold process and behaves the same,
// error classes included. poold knows nothing of Kubernetes and needs no
// credentials for it. A process that may open the socket has the power of root on
// this node, so only root and poold's own user may open it.
package poold
