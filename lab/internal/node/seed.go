package node

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"berth.dev/berth/lab/internal/guest"
	"berth.dev/berth/lab/internal/guest/wire"
	"berth.dev/berth/lab/internal/san"
)

// Where things are in a node.
const (
	binDir           = wire.ToolsDir + "/bin"
	pluginDir        = wire.ToolsDir + "/cni"
	containerdConfig = "/etc/containerd/config.toml"
	containerdSocket = "/run/containerd/containerd.sock"
	pluginConfigDir  = "/etc/cni/net.d"
	kubeletConfig    = "/etc/kubernetes/kubelet.json"
	kubeconfig       = "/etc/kubernetes/kubelet.kubeconfig"
	proxyConfig      = "/etc/kubernetes/kube-proxy.json"
	proxyKubeconfig  = "/etc/kubernetes/kube-proxy.kubeconfig"
	caCert           = "/etc/kubernetes/ca.crt"
	servingCert      = "/etc/kubernetes/kubelet.crt"
	servingKey       = "/etc/kubernetes/kubelet.key"
)

// Names of the services, and so of their logs.
const (
	Containerd = "containerd"
	Kubelet    = "kubelet"
	KubeProxy  = "kube-proxy"
)

// Seed returns the seed that makes a guest the node.
func Seed(c Config) (guest.Seed, error) {
	if err := c.validate(); err != nil {
		return guest.Seed{}, fmt.Errorf("configuring node %s: %w", c.Name, err)
	}
	kubelet, err := json.MarshalIndent(c.kubelet(), "", "  ")
	if err != nil {
		return guest.Seed{}, fmt.Errorf("configuring the kubelet of %s: %w", c.Name, err)
	}
	proxy, err := json.MarshalIndent(c.proxy(), "", "  ")
	if err != nil {
		return guest.Seed{}, fmt.Errorf("configuring the proxy of %s: %w", c.Name, err)
	}
	plugins, err := json.MarshalIndent(c.podNetwork(), "", "  ")
	if err != nil {
		return guest.Seed{}, fmt.Errorf("configuring the pod network of %s: %w", c.Name, err)
	}
	return guest.Seed{
		Plan: wire.Plan{
			Network: &wire.Interface{MAC: c.MAC, Address: c.Address.String(), Gateway: c.Gateway.String()},
			Modules: []string{"overlay", "veth", "bridge", "br_netfilter", "softdog"},
			Sysctl: map[string]string{
				"net/ipv4/ip_forward": "1", "fs/inotify/max_user_instances": "1024",
				// An answer from one pod of the node to another must pass the address translation
				// that the question passed. A native node has this by default.
				"net/bridge/bridge-nf-call-iptables": "1",
			},
			Services: c.services(),
		},
		Files: append(san.InitiatorFiles(c.Name),
			text("/etc/hosts", 0o644, fmt.Appendf(nil, "127.0.0.1 localhost\n%s %s\n", c.Address.Addr(), c.Name)),
			text("/etc/hostname", 0o644, []byte(c.Name+"\n")),
			text("/etc/machine-id", 0o444, []byte(machineID(c.Name)+"\n")),
			text(containerdConfig, 0o644, c.containerd()),
			text(pluginConfigDir+"/10-lab.conflist", 0o644, plugins),
			text(kubeletConfig, 0o644, kubelet),
			text(kubeconfig, 0o600, c.Kubeconfig),
			text(proxyConfig, 0o644, proxy),
			text(proxyKubeconfig, 0o600, c.Proxy),
			text(caCert, 0o644, c.CA),
			text(servingCert, 0o644, c.ServingCert),
			text(servingKey, 0o600, c.ServingKey),
		),
	}, nil
}

// services returns the services in the order in which they must start: the kubelet ends at
// once when containerd's socket is not there.
func (c Config) services() []wire.Service {
	return []wire.Service{
		{Name: Containerd, Socket: containerdSocket, Argv: []string{binDir + "/containerd", "--config", containerdConfig}},
		{Name: Kubelet, Argv: []string{binDir + "/kubelet",
			"--config", kubeletConfig, "--kubeconfig", kubeconfig, "--hostname-override", c.Name,
			"--node-ip", c.Address.Addr().String(), "--cert-dir", "/var/lib/kubelet/pki", "--v=2",
			// Housekeeping reads the usage of each cgroup, also while the node is idle.
			"--housekeeping-interval=1m"}},
		{Name: KubeProxy, Argv: []string{binDir + "/kube-proxy", "--config", proxyConfig}},
	}
}

// machineID returns an id that is the same at each boot of a node, and different for each node.
func machineID(name string) string {
	sum := sha256.Sum256([]byte("berth lab node " + name))
	return hex.EncodeToString(sum[:16])
}

func text(path string, mode uint32, data []byte) guest.File {
	return guest.File{Path: path, Mode: mode, Data: data}
}
