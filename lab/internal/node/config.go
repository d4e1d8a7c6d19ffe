package node

import (
	"errors"
	"fmt"
	"net/netip"
)

// Config describes one node.
type Config struct {
	Name        string
	Control     bool         // has the taint of a control plane
	Address     netip.Prefix // of the node, with the length of its network
	MAC         string
	Gateway     netip.Addr
	Pods        netip.Prefix // addresses of its pods
	ClusterPods netip.Prefix // addresses of the pods of all nodes
	ClusterDNS  netip.Addr
	Domain      string // of the cluster's names
	PauseImage  string // name of the image every pod begins with

	CA          []byte // PEM, of the cluster
	Kubeconfig  []byte // of the kubelet, as user system:node:NAME
	Proxy       []byte // kubeconfig of kube-proxy, as user system:kube-proxy
	ServingCert []byte // PEM, of the kubelet's server; must name Address
	ServingKey  []byte

	// StockTimeouts leaves the kubelet's intervals at its defaults.
	StockTimeouts bool

	// Cgroup is the cgroup that holds the node on the machine that it shares the
	// kernel with, as an absolute path in every hierarchy; empty for a guest,
	// which has its own kernel.
	Cgroup string
}

func (c Config) validate() error {
	var errs []error
	missing := func(what string, is bool) {
		if is {
			errs = append(errs, fmt.Errorf("%s is missing", what))
		}
	}
	missing("address", !c.Address.IsValid())
	missing("gateway", !c.Gateway.IsValid())
	missing("pod network", !c.Pods.IsValid())
	missing("network of all pods", !c.ClusterPods.IsValid())
	missing("address of the cluster's DNS", !c.ClusterDNS.IsValid())
	missing("domain of the cluster", c.Domain == "")
	missing("hardware address", c.MAC == "")
	missing("pause image", c.PauseImage == "")
	missing("certificate authority", len(c.CA) == 0)
	missing("kubeconfig", len(c.Kubeconfig) == 0)
	missing("proxy's kubeconfig", len(c.Proxy) == 0)
	missing("serving certificate", len(c.ServingCert) == 0)
	missing("serving key", len(c.ServingKey) == 0)
	if c.Address.IsValid() && c.Gateway.IsValid() && !c.Address.Contains(c.Gateway) {
		errs = append(errs, fmt.Errorf("gateway %s is not in %s", c.Gateway, c.Address.Masked()))
	}
	return errors.Join(errs...)
}
