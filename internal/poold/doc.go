// Package poold is the node's root-only part: the provisioner and the mounter of
// one node behind one interface, in this process or across a unix socket.
//
// Node is what the agent works with. NewLocal joins a provisioner and a mounter in
// the same process; Dial reaches those of a poold process and behaves the same,
// error classes included. poold knows nothing of Kubernetes and needs no
// credentials of it; whoever may open the socket is root on this node, so the
// socket is for root and poold's own user alone.
package poold
