// Package takeover measures how long Berth itself takes until another node has the shared disk of a node that
// was lost, with real processes at the speed of this machine.
//
// A real etcd and a real API server run, two controllers, and on each of three nodes a guard and an agent of
// shared disks.
// A node is a network, process and mount namespace of its own, with a boot id of its own. Its loss takes its
// link down, so that nothing of it is heard any more, and then kills all its processes at once. The disk is a
// simulated one in a file, with a loop device for each node.
//
// An agent of pools would look at the disks of this machine, so only its Lease and its StorageNode are there. What
// is not Berth's is played, and takes no time: the kubelet stages and publishes and has no containers to
// make, the scheduler binds a pod to a node that has the volume's label, and a pod that was ended is made
// anew at once. The kubelet repeats a call that failed after the pauses that a real one makes.
//
// All runs in namespaces that end with the test, however it ends: see make bench-failover-native.
package takeover
