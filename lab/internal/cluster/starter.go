package cluster

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"berth.dev/berth/lab/internal/catalog"
	"berth.dev/berth/lab/internal/controlplane"
	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/node"
	"berth.dev/berth/lab/internal/pki"
)

// starter starts the nodes of a cluster. It has what all of them start from: the materials, the
// network and the control plane's configuration.
type starter struct {
	cluster   *Cluster
	materials materials
	net       *network.Network
	config    controlplane.Config
}

// bootLimit bounds the wait for the machine of one node.
const bootLimit = 2 * time.Minute

// nodeConfig makes the configuration of one node: its addresses and certificates.
func (s starter) nodeConfig(ctx context.Context, n Node, index int) (node.Config, error) {
	name, config := n.name, s.config
	address, err1 := network.NodeAddress(index)
	pods, err2 := network.PodNetwork(index)
	mac, err3 := network.NodeMAC(index)
	if err := errors.Join(err1, err2, err3); err != nil {
		return node.Config{}, err
	}
	if err := s.net.Route(ctx, pods, address); err != nil {
		return node.Config{}, err
	}
	user := pki.Subject{Name: "system:node:" + name, Groups: []string{"system:nodes"}}
	kubeconfig, err := config.Authority.Kubeconfig("kubelet-"+name, config.Server(), user)
	if err != nil {
		return node.Config{}, err
	}
	serving := user
	serving.IPs, serving.DNS = []netip.Addr{address}, []string{name}
	pair, err := config.Authority.Issue("kubelet-serving-"+name, serving)
	if err != nil {
		return node.Config{}, err
	}
	proxy, err := config.Authority.Kubeconfig("kube-proxy", config.Server(), pki.Subject{Name: "system:kube-proxy"})
	if err != nil {
		return node.Config{}, err
	}
	return node.Config{
		Name:        name,
		Control:     name == controlNode,
		Address:     netip.PrefixFrom(address, network.Nodes.Bits()),
		MAC:         mac,
		Gateway:     network.Gateway,
		Pods:        pods,
		ClusterPods: network.Pods,
		ClusterDNS:  network.DNSService,
		Domain:      controlplane.Domain,
		PauseImage:  catalog.Pause,
		CA:          config.Authority.CertPEM(),
		Kubeconfig:  kubeconfig,
		Proxy:       proxy,
		ServingCert: pair.Cert,
		ServingKey:  pair.Key,

		StockTimeouts: s.cluster.Settings().StockTimeouts,
	}, nil
}
