package controlplane

import (
	"net/netip"

	"berth.dev/berth/lab/internal/pki"
)

// Admin is the user of the cluster's administrator.
var Admin = pki.Subject{Name: "lab-admin", Groups: []string{"system:masters"}}

// writeCertificates makes the certificates and keys that the components' arguments name.
func (c Config) writeCertificates() error {
	local := netip.MustParseAddr("127.0.0.1") // the forwarder's clients know the server by it
	pairs := map[string]pki.Subject{
		"apiserver": {
			Name: "kube-apiserver",
			IPs:  []netip.Addr{local, c.Address, c.ServiceIP},
			DNS: []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc",
				"kubernetes.default.svc." + Domain},
		},
		"sa":             {Name: "service-accounts"}, // only its key is used, to sign tokens
		"kubelet-client": {Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
		"front-proxy":    {Name: "front-proxy-client"},
	}
	for name, subject := range pairs {
		if _, err := c.Authority.Issue(name, subject); err != nil {
			return err
		}
	}
	users := map[string]pki.Subject{
		"controller-manager": {Name: "system:kube-controller-manager"},
		"scheduler":          {Name: "system:kube-scheduler"},
		"coredns":            {Name: dnsUser},
	}
	for name, subject := range users {
		if _, err := c.Authority.WriteKubeconfig(name, c.Server(), subject); err != nil {
			return err
		}
	}
	return nil
}
