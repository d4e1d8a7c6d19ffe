package controlplane

import "fmt"

// etcdClients and etcdPeers are loopback addresses of the namespace: guests
// cannot reach them, so they need no certificates.
const (
	etcdClients = "http://127.0.0.1:2379"
	etcdPeers   = "http://127.0.0.1:2380"
)

func (c Config) etcdArgs() []string {
	return []string{
		"--name=lab",
		"--data-dir=" + c.data(),
		"--listen-client-urls=" + etcdClients,
		"--advertise-client-urls=" + etcdClients,
		"--listen-peer-urls=" + etcdPeers,
		"--initial-advertise-peer-urls=" + etcdPeers,
		"--initial-cluster=lab=" + etcdPeers,
		"--log-level=warn",
		"--unsafe-no-fsync", // the machine may crash; the lab is then started anew
	}
}

func (c Config) apiServerArgs() []string {
	file := c.Authority.Path
	return append(c.evictions(), []string{
		"--etcd-servers=" + etcdClients,
		"--bind-address=0.0.0.0",
		fmt.Sprintf("--secure-port=%d", Port),
		"--advertise-address=" + c.Address.String(),
		"--service-cluster-ip-range=" + c.Services.String(),
		// No kube-proxy translates addresses for the API server, which runs on no node: it calls
		// the endpoints of webhooks and of aggregated APIs.
		"--enable-aggregator-routing=true",
		"--tls-cert-file=" + file("apiserver.crt"),
		"--tls-private-key-file=" + file("apiserver.key"),
		"--client-ca-file=" + file("ca.crt"),
		"--anonymous-auth=false",
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--allow-privileged=true",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + file("sa.key"),
		"--service-account-signing-key-file=" + file("sa.key"),
		"--kubelet-preferred-address-types=InternalIP", // there is no DNS for node names
		"--kubelet-certificate-authority=" + file("ca.crt"),
		"--kubelet-client-certificate=" + file("kubelet-client.crt"),
		"--kubelet-client-key=" + file("kubelet-client.key"),
		"--requestheader-client-ca-file=" + file("ca.crt"),
		"--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file=" + file("front-proxy.crt"),
		"--proxy-client-key-file=" + file("front-proxy.key"),
		"--shutdown-delay-duration=0s",
		"--profiling=false",
	}...)
}

// evictions makes pods leave a lost node after three seconds, and not after five minutes.
func (c Config) evictions() []string {
	if c.StockTimeouts {
		return nil
	}
	return []string{"--default-not-ready-toleration-seconds=3", "--default-unreachable-toleration-seconds=3"}
}

func (c Config) controllerManagerArgs() []string {
	file := c.Authority.Path
	args := []string{
		"--kubeconfig=" + file("controller-manager.kubeconfig"),
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--use-service-account-credentials=true",
		"--service-account-private-key-file=" + file("sa.key"),
		"--root-ca-file=" + file("ca.crt"),
		"--cluster-signing-cert-file=" + file("ca.crt"),
		"--cluster-signing-key-file=" + file("ca.key"),
		"--controllers=*,-node-ipam-controller,-bootstrap-signer-controller,-token-cleaner-controller",
		"--kube-api-qps=500", // the default makes the start take four seconds longer
		"--kube-api-burst=1000",
	}
	if !c.StockTimeouts {
		args = append(args, "--attach-detach-reconcile-sync-period=5s")
	}
	return args
}

func (c Config) schedulerArgs() []string {
	config := c.Authority.Path("scheduler.kubeconfig")
	return []string{
		"--kubeconfig=" + config,
		"--authentication-kubeconfig=" + config,
		"--authorization-kubeconfig=" + config,
		"--bind-address=127.0.0.1",
		"--leader-elect=false",
		"--kube-api-qps=5000",
		"--kube-api-burst=5000",
	}
}
