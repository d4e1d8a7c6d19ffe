package node

// proxy returns the KubeProxyConfiguration. The mode is nftables: it changes the rules of those
// Services that changed, where iptables reads and writes all rules, which takes an emulated
// processor seconds. Zero leaves a limit or time-out of connection tracking at the kernel's
// value: those of a native node are the machine's.
func (c Config) proxy() map[string]any {
	return map[string]any{
		"apiVersion":        "kubeproxy.config.k8s.io/v1alpha1",
		"kind":              "KubeProxyConfiguration",
		"hostnameOverride":  c.Name,
		"mode":              "nftables",
		"clientConnection":  map[string]any{"kubeconfig": proxyKubeconfig},
		"clusterCIDR":       c.ClusterPods.String(),
		"detectLocalMode":   "ClusterCIDR",
		"nodePortAddresses": []string{"primary"},
		"conntrack": map[string]any{
			"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s",
		},
	}
}
