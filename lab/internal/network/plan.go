package network

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/netip"
)

// The addresses of a lab. They exist only inside its namespace, so all labs
// of a machine use the same ones.
var (
	// Gateway is the bridge's address: control plane and router.
	Gateway = netip.MustParseAddr("10.77.0.1")
	// SANAddress is the address of the storage target, on the bridge or in a guest.
	SANAddress = netip.MustParseAddr("10.77.0.2")
	// DNSAddress is the address of the cluster's DNS server, on the bridge. It is not [Gateway],
	// so that a node that is cut from [API] keeps its names, as elsewhere.
	DNSAddress = netip.MustParseAddr("10.77.0.3")
	// Nodes is the network of the bridge.
	Nodes = netip.MustParsePrefix("10.77.0.0/24")
	// Pods holds the pod networks of all nodes.
	Pods = netip.MustParsePrefix("10.88.0.0/16")
	// Services is the range of cluster addresses.
	Services = netip.MustParsePrefix("10.96.0.0/16")
	// APIService is the cluster address of the `kubernetes` Service.
	APIService = netip.MustParseAddr("10.96.0.1")
	// DNSService is the cluster address of the `kube-dns` Service.
	DNSService = netip.MustParseAddr("10.96.0.10")
)

// SANMAC is the hardware address of the storage target's guest.
const SANMAC = "02:77:00:00:02:01"

// MaxNodes is the number of nodes that the addresses are enough for.
const MaxNodes = 200

const (
	bridge = "lab0"
	// bridgeMAC is fixed because a bridge otherwise takes over the lowest address of
	// its ports; guests would then lose their neighbour entry for a while.
	bridgeMAC = "02:77:00:00:00:01"
)

// NodeAddress returns the address of the node with an index from 1 to MaxNodes.
func NodeAddress(index int) (netip.Addr, error) {
	if err := checkIndex(index); err != nil {
		return netip.Addr{}, err
	}
	return netip.AddrFrom4([4]byte{10, 77, 0, byte(index + 9)}), nil
}

// PodNetwork returns the pod network of the node with an index from 1 to MaxNodes.
func PodNetwork(index int) (netip.Prefix, error) {
	if err := checkIndex(index); err != nil {
		return netip.Prefix{}, err
	}
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 88, byte(index), 0}), 24), nil
}

// NodeMAC returns the hardware address of the node with an index from 1 to MaxNodes.
func NodeMAC(index int) (string, error) {
	if err := checkIndex(index); err != nil {
		return "", err
	}
	return fmt.Sprintf("02:77:00:00:01:%02x", index), nil
}

func checkIndex(index int) error {
	if index < 1 || index > MaxNodes {
		return fmt.Errorf("node index %d: must be from 1 to %d", index, MaxNodes)
	}
	return nil
}

// tapName returns the interface name for a node: at most 15 characters, the
// kernel's limit, and different for different nodes.
func tapName(node string) string {
	const limit = 15
	if name := "tap-" + node; len(name) <= limit && node != "" {
		return name
	}
	sum := sha256.Sum256([]byte(node))
	return "tap." + hex.EncodeToString(sum[:])[:limit-len("tap.")]
}
