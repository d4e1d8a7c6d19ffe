// Package node says what makes a guest a Kubernetes node: containerd, runc,
// the network plugins, the kubelet and kube-proxy, with their configuration.
//
// The programs are on one read-only disk that all nodes share ([Tools]), so
// that new programs need neither a new root filesystem nor a copy per node.
// The seed ([Seed]) holds the parts that differ between nodes: name, addresses,
// certificates and configuration files. Everything a node writes (images,
// containers, pods' data) is on its own root disk and outlives power cycles.
// The leases of pod addresses are in memory and do not, like the pods'
// interfaces themselves.
//
// The kubelet looks at its pods more often than by default. Its lease has the
// default duration, since emulated nodes stand still for seconds on a busy machine.
package node
