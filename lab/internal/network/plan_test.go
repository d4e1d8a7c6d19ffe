package network

import (
	"net/netip"
	"testing"
)

func TestEveryNodeHasItsOwnAddressesInsideTheirNetworks(t *testing.T) {
	seen := map[string]int{}
	for index := 1; index <= MaxNodes; index++ {
		address, err := NodeAddress(index)
		if err != nil {
			t.Fatal(err)
		}
		pods, err := PodNetwork(index)
		if err != nil {
			t.Fatal(err)
		}
		mac, err := NodeMAC(index)
		if err != nil {
			t.Fatal(err)
		}
		if !Nodes.Contains(address) || address == Gateway {
			t.Errorf("node %d: address %s is not a guest's address of %s", index, address, Nodes)
		}
		if !Pods.Overlaps(pods) || pods.Bits() <= Pods.Bits() {
			t.Errorf("node %d: pod network %s is not a part of %s", index, pods, Pods)
		}
		for _, s := range []string{address.String(), pods.String(), mac} {
			if other, taken := seen[s]; taken {
				t.Errorf("nodes %d and %d both have %s", other, index, s)
			}
			seen[s] = index
		}
	}
}

func TestNodeIndexOutOfRangeIsRefused(t *testing.T) {
	for _, index := range []int{-1, 0, MaxNodes + 1} {
		if a, err := NodeAddress(index); err == nil {
			t.Errorf("index %d: got address %s, want an error", index, a)
		}
		if p, err := PodNetwork(index); err == nil {
			t.Errorf("index %d: got pod network %s, want an error", index, p)
		}
		if m, err := NodeMAC(index); err == nil {
			t.Errorf("index %d: got hardware address %s, want an error", index, m)
		}
	}
}

func TestNetworksOfALabDoNotOverlap(t *testing.T) {
	all := []netip.Prefix{Nodes, Pods, Services}
	for i, a := range all {
		for _, b := range all[i+1:] {
			if a.Overlaps(b) {
				t.Errorf("%s overlaps %s", a, b)
			}
		}
	}
	for _, service := range []netip.Addr{APIService, DNSService} {
		if !Services.Contains(service) {
			t.Errorf("%s is not in %s", service, Services)
		}
	}
	first, err := NodeAddress(1)
	if err != nil {
		t.Fatal(err)
	}
	for _, fixed := range []netip.Addr{Gateway, SANAddress, DNSAddress} {
		if !Nodes.Contains(fixed) || !fixed.Less(first) {
			t.Errorf("%s is not below the nodes' addresses", fixed)
		}
	}
}

func TestTapNamesFitTheKernelAndDiffer(t *testing.T) {
	nodes := []string{"", "node-1", "node-11", "a-very-long-node-name-1", "a-very-long-node-name-2", "12345678901", "123456789012"}
	seen := map[string]string{}
	for _, node := range nodes {
		name := tapName(node)
		if len(name) > 15 {
			t.Errorf("node %q: tap name %q has %d characters", node, name, len(name))
		}
		if other, taken := seen[name]; taken {
			t.Errorf("nodes %q and %q share tap name %q", node, other, name)
		}
		seen[name] = node
	}
}

func TestLabNamesThatCannotNameANamespaceAreRefused(t *testing.T) {
	for _, name := range []string{"", "-a", "a-", "A", "a/b", "..", "a b", string(make([]byte, 41))} {
		if n, err := at(name); err == nil {
			t.Errorf("name %q: got namespace %s, want an error", name, n.Path())
		}
	}
	if _, err := at("default"); err != nil {
		t.Error(err)
	}
}
