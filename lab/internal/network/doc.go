// Package network is the private network of a lab.
//
// One network namespace holds a bridge, and on the bridge the control plane
// (10.77.0.1) and one tap per guest (10.77.0.10 upwards). Nothing of it is
// visible in the machine's own namespace and no packet leaves it; a forwarder
// carries single TCP ports from 127.0.0.1 inside.
//
// The namespace is also the router between the nodes' pod networks: a guest
// needs only a default route to the bridge, and a node that is added later is
// known to all others at once.
//
// The bridge also has the addresses of the Services `kubernetes` and `kube-dns`. With an API
// server that listens on port 443 of all addresses, and a DNS server on port 53 of both of its
// own, pods reach them also while kube-proxy on their node has not started yet.
//
// [Network.Cut] sets a tap down, which is like a pulled cable; [Network.Heal] undoes it.
// [Network.Sever] takes a [Part] of the network away: rules of nftables at the node's port
// drop it. [Link] is what netem does to the packets that a node sends.
//
// Every call is idempotent. The names of the namespace and of the taps are
// functions of the lab's and the node's name, so that a half-made network is
// found again and completed or destroyed.
package network
