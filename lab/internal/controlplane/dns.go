package controlplane

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"berth.dev/berth/lab/internal/network"
	"berth.dev/berth/lab/internal/progress"
)

// Domain ends the names of all Services and pods.
const Domain = "cluster.local"

// dnsUser is the user that CoreDNS is for the API server, and the name of its role.
const dnsUser = "system:coredns"

const dnsPort = 53

func (c Config) corefilePath() string { return filepath.Join(c.Dir, "Corefile") }

func (c Config) dnsArgs() []string { return []string{"-conf", c.corefilePath()} }

// corefile returns CoreDNS' configuration. The kubernetes plugin has the settings that kubeadm
// gives it. All other names do not exist: to forward them leads nowhere in the lab, and a
// failure instead of NXDOMAIN makes clients ask again and again.
func (c Config) corefile() []byte {
	return fmt.Appendf(nil, `%[1]s in-addr.arpa ip6.arpa {
    bind %[2]s %[3]s
    errors
    kubernetes {
        kubeconfig %[4]s
        pods insecure
        ttl 30
    }
    loadbalance
}
. {
    bind %[2]s %[3]s
    errors
    template IN ANY {
        rcode NXDOMAIN
    }
}
`, Domain, c.DNS, c.DNSService, c.Authority.Path("coredns.kubeconfig"))
}

// startDNS makes the Service of the cluster's names and starts their server. It does so before
// the controllers start: kube-proxy drops what goes to a Service that it does not know, and so
// knows this one before it lets a pod ask.
func (c Config) startDNS(ctx context.Context, client *Client, journal Journal) error {
	if c.CoreDNS == "" {
		return nil
	}
	check := func() error { return check(c, journal, []string{apiServer}) }
	if err := client.Wait(ctx, "/api/v1/namespaces/kube-system", check); err != nil {
		return err
	}
	if err := os.WriteFile(c.corefilePath(), c.corefile(), 0o644); err != nil {
		return fmt.Errorf("configuring %s: %w", DNS, err)
	}
	for _, o := range c.dnsObjects() {
		if err := client.Apply(ctx, o.path, o.content); err != nil {
			return err
		}
	}
	return ensure(ctx, c, journal, []string{DNS})
}

// awaitDNS waits until the server listens, which it does once it has read all Services. It gives
// up at once when the server has ended, and after [startLimit].
func (c Config) awaitDNS(ctx context.Context, journal Journal, step progress.Step) error {
	if c.CoreDNS == "" {
		return nil
	}
	step.Note("waiting for %s", DNS)
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("%s does not listen after %v", DNS, startLimit))
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := network.Dial(ctx, c.NetNS, netip.AddrPortFrom(c.DNS, dnsPort).String())
		if err == nil {
			return conn.Close()
		}
		if err := check(c, journal, []string{DNS}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// object is an object of the API server.
type object struct {
	path    string
	content map[string]any
}

// dnsObjects are the Service that pods know the server by, and what the server may read. The
// server is no pod, so the Service has no selector and its endpoint is written here.
func (c Config) dnsObjects() []object {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	type list = []any
	type fields = map[string]any
	named := func(labels fields) fields {
		return fields{"name": "kube-dns", "namespace": "kube-system", "labels": labels}
	}
	return []object{
		{rbac + "clusterroles/" + dnsUser, fields{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": fields{"name": dnsUser},
			"rules": list{
				fields{"apiGroups": list{""}, "resources": list{"services", "namespaces", "pods"}, "verbs": list{"list", "watch"}},
				fields{"apiGroups": list{"discovery.k8s.io"}, "resources": list{"endpointslices"}, "verbs": list{"list", "watch"}},
			},
		}},
		{rbac + "clusterrolebindings/" + dnsUser, fields{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": fields{"name": dnsUser},
			"roleRef":  fields{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": dnsUser},
			"subjects": list{fields{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": dnsUser}},
		}},
		{"/api/v1/namespaces/kube-system/services/kube-dns", fields{
			"apiVersion": "v1", "kind": "Service",
			"metadata": named(fields{"k8s-app": "kube-dns", "kubernetes.io/name": "CoreDNS"}),
			"spec": fields{"clusterIP": c.DNSService.String(), "ports": list{
				fields{"name": "dns", "port": dnsPort, "protocol": "UDP"},
				fields{"name": "dns-tcp", "port": dnsPort, "protocol": "TCP"},
			}},
		}},
		{"/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices/kube-dns", fields{
			"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
			"metadata":  named(fields{"kubernetes.io/service-name": "kube-dns", "endpointslice.kubernetes.io/managed-by": "lab"}),
			"endpoints": list{fields{"addresses": list{c.DNS.String()}, "conditions": fields{"ready": true}}},
			"ports": list{
				fields{"name": "dns", "port": dnsPort, "protocol": "UDP"},
				fields{"name": "dns-tcp", "port": dnsPort, "protocol": "TCP"},
			},
		}},
	}
}
