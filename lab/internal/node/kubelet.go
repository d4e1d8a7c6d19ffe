package node

// kubelet returns the KubeletConfiguration. What it leaves out is the
// kubelet's default, so are the intervals of its lease and status: an emulated
// processor feels each renewal, and on a busy machine a short lease runs out while
// the node is well. What a pod waits for is looked at more often than by default.
func (c Config) kubelet() map[string]any {
	settings := map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"address":                  c.Address.Addr().String(),
		"port":                     10250,
		"readOnlyPort":             0,
		"healthzBindAddress":       "127.0.0.1",
		"healthzPort":              10248,
		"tlsCertFile":              servingCert,
		"tlsPrivateKeyFile":        servingKey,
		"authentication":           map[string]any{"anonymous": enabled(false), "webhook": enabled(true), "x509": map[string]any{"clientCAFile": caCert}},
		"authorization":            map[string]any{"mode": "Webhook"},
		"containerRuntimeEndpoint": "unix://" + containerdSocket,
		"cgroupDriver":             "cgroupfs",
		"failSwapOn":               false,
		"resolvConf":               "",
		"clusterDNS":               []string{c.ClusterDNS.String()},
		"clusterDomain":            "cluster.local",

		"syncFrequency":       "5s",
		"shutdownGracePeriod": "0s",
		"serializeImagePulls": false,

		// A test may fill the root disk; it must not lose its node and images.
		"evictionHard": map[string]string{
			"memory.available": "50Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%", "imagefs.available": "1%",
		},
		"imageGCHighThresholdPercent": 100,
	}
	if c.Control {
		settings["registerWithTaints"] = []map[string]string{{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}}
	}
	if c.Cgroup != "" {
		settings["cgroupRoot"] = c.Cgroup
		settings["failCgroupV1"] = false
		settings["enforceNodeAllocatable"] = []string{} // nothing is the node's alone
	}
	return settings
}

func enabled(is bool) map[string]any { return map[string]any{"enabled": is} }
