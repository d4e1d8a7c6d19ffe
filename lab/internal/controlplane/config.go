package controlplane

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"berth.dev/berth/lab/internal/pki"
	"berth.dev/berth/lab/internal/process"
)

// Port is where the API server listens, on all addresses of the namespace. It
// is the port of the `kubernetes` Service, so that pods reach the server at
// the Service's address without address translation.
const Port = 443

// Config says where a control plane lives.
type Config struct {
	Programs  string       // directory with kube-apiserver, kube-controller-manager, kube-scheduler
	Etcd      string       // directory with etcd
	EtcdTools string       // directory with etcdctl and etcdutl, for [Backup] and [Restore]
	CoreDNS   string       // directory with coredns; empty for a cluster without names
	Dir       string       // etcd's data and the logs
	NetNS     string       // path of the network namespace
	Address   netip.Addr   // of the API server in the namespace
	ServiceIP netip.Addr   // of the `kubernetes` Service
	Services  netip.Prefix // range of Service addresses
	// DNS and DNSService are addresses of the namespace on which CoreDNS listens. DNSService is
	// the address of the `kube-dns` Service, and DNS that of its endpoint.
	DNS, DNSService netip.Addr
	Authority       *pki.Authority
	// StockTimeouts leaves all time-outs and intervals at Kubernetes' defaults.
	StockTimeouts bool
}

// Server returns the URL of the API server in the namespace.
func (c Config) Server() string { return fmt.Sprintf("https://%s:%d", c.Address, Port) }

// LogPath returns the log of a component.
func (c Config) LogPath(component string) string {
	return filepath.Join(c.Dir, "log", component+".log")
}

// Components are the names of the processes, in the order they start. A cluster without names
// has no [DNS].
var Components = []string{etcd, apiServer, controllerManager, scheduler, DNS}

const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
)

// DNS is the name of the process that serves the cluster's names.
const DNS = "coredns"

func (c Config) spec(component string) process.Spec {
	args := map[string]func() []string{
		etcd:              c.etcdArgs,
		apiServer:         c.apiServerArgs,
		controllerManager: c.controllerManagerArgs,
		scheduler:         c.schedulerArgs,
		DNS:               c.dnsArgs,
	}
	dir := c.Programs
	switch component {
	case etcd:
		dir = c.Etcd
	case DNS:
		dir = c.CoreDNS
	}
	return process.Spec{
		Name:  component,
		Path:  filepath.Join(dir, component),
		Args:  args[component](),
		Log:   c.LogPath(component),
		NetNS: c.NetNS,
	}
}
