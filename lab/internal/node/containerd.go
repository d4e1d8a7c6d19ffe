package node

import (
	"fmt"
	"strings"

	"berth.dev/berth/lab/internal/guest/wire"
)

// unusedPlugins of containerd only cost start-up time.
var unusedPlugins = []string{
	"io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper",
	"io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.erofs", "io.containerd.nri.v1.nri",
	"io.containerd.tracing.processor.v1.otlp",
}

func quoted(plugins []string) string { return `"` + strings.Join(plugins, `", "`) + `"` }

// containerd returns containerd's configuration. All other settings have containerd's
// defaults. stats_collect_period is set because containerd by default asks the shim of each
// container and pod every second for its processor time. That slows an emulated processor,
// and the lab does not need the figures.
func (c Config) containerd() []byte {
	return fmt.Appendf(nil, `version = 4
root = %q
state = "/run/containerd"
disabled_plugins = [%s]
[plugins."io.containerd.server.v1.grpc"]
  address = %q
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  stats_collect_period = 60 # seconds
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = %q
[plugins."io.containerd.cri.v1.runtime"]
  disable_apparmor = true
  restrict_oom_score_adj = %t
  stats_collect_period = "1m"
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = [%q]
    conf_dir = %q
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = %q
        SystemdCgroup = false
`, wire.ImagesDir, quoted(unusedPlugins), containerdSocket, c.PauseImage, c.Cgroup != "", pluginDir, pluginConfigDir, binDir+"/runc")
}

// podNetwork returns the configuration of the network plugins: a bridge per
// node. Packets to other nodes' pods leave by the default route, to the router
// that knows all of them, with the pod's own address.
func (c Config) podNetwork() map[string]any {
	return map[string]any{
		"cniVersion": "1.0.0",
		"name":       "pods",
		"plugins": []any{map[string]any{
			"type":      "bridge",
			"bridge":    "cni0",
			"isGateway": true,
			"ipMasq":    false,
			// A pod reaches itself through a Service that it is an endpoint of.
			"hairpinMode": true,
			"ipam": map[string]any{
				"type":    "host-local",
				"ranges":  []any{[]any{map[string]any{"subnet": c.Pods.String()}}},
				"routes":  []any{map[string]any{"dst": "0.0.0.0/0"}},
				"dataDir": "/run/cni/networks",
			},
		}},
	}
}
