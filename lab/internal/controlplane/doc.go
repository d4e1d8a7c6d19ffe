// Package controlplane runs etcd, the API server, the controller manager, the scheduler and
// CoreDNS in the network namespace of a lab.
//
// They are processes of their own, so that a test can kill each alone. The
// programs may be self-built or official ones; both take the same arguments.
//
// CoreDNS is no Deployment, as it is elsewhere: a pod would start late and take memory on an
// emulated node, and all names would be lost with the node that a test takes away. Pods reach
// it as the Service `kube-dns` of kube-system, as elsewhere.
// Kubernetes notices the loss of a node within 50 seconds and evicts its pods 3 seconds later.
package controlplane
