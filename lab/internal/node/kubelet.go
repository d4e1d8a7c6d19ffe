package node

// kubelet returns the KubeletConfiguration. All other settings have the kubelet's
// defaults, also the intervals of its lease and status: each renewal slows an emulated
// processor, and on a busy machine a short lease runs out while the node is well. The
// kubelet checks the conditions that a pod waits for more often than by default.
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
		"clusterDomain":            c.Domain,

		"shutdownGracePeriod": "0s",
		"serializeImagePulls": false,

		// A test may fill the root disk; it must not lose its node and images. Without any
		// limit the kubelet also does not ask every ten seconds how much each pod uses, which
		// would slow an emulated processor.
		"evictionHard": map[string]string{
			"memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%",
		},
		"localStorageCapacityIsolation": false,
		"imageGCHighThresholdPercent":   100,
	}
	if !c.StockTimeouts {
		settings["syncFrequency"] = "5s"
	}
	if c.Control {
		settings["registerWithTaints"] = []map[string]string{{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}}
	}
	if c.Cgroup != "" {
		settings["cgroupRoot"] = c.Cgroup
		settings["failCgroupV1"] = false
		settings["enforceNodeAllocatable"] = []string{} // the node shares everything with the machine
	}
	return settings
}

func enabled(is bool) map[string]any { return map[string]any{"enabled": is} }
