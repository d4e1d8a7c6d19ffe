package node

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestTheProxyHasItsKubeconfigAndLeavesTheKernelsLimits(t *testing.T) {
	s := seed(t, config())
	var proxy struct {
		Mode, HostnameOverride, ClusterCIDR string
		ClientConnection                    struct{ Kubeconfig string }
		Conntrack                           struct {
			MaxPerCore, Min                            *int
			TCPEstablishedTimeout, TCPCloseWaitTimeout string
		}
	}
	if err := json.Unmarshal([]byte(content(t, s, proxyConfig)), &proxy); err != nil {
		t.Fatal(err)
	}
	if got := content(t, s, proxy.ClientConnection.Kubeconfig); got != "proxy" {
		t.Errorf("the proxy's kubeconfig is %q", got)
	}
	if proxy.Mode != "nftables" || proxy.HostnameOverride != "node1" || proxy.ClusterCIDR != "10.88.0.0/16" {
		t.Errorf("the proxy's configuration is %+v", proxy)
	}
	limits := proxy.Conntrack
	if limits.MaxPerCore == nil || *limits.MaxPerCore != 0 || limits.Min == nil || *limits.Min != 0 {
		t.Errorf("a native node would change the machine's limits: %+v", limits)
	}
	if limits.TCPEstablishedTimeout != "0s" || limits.TCPCloseWaitTimeout != "0s" {
		t.Errorf("the proxy changes the kernel's time-outs: %+v", limits)
	}
}

func TestAnswersFromPodToPodPassTheAddressTranslation(t *testing.T) {
	plan := seed(t, config()).Plan
	if !slices.Contains(plan.Modules, "br_netfilter") || plan.Sysctl["net/bridge/bridge-nf-call-iptables"] != "1" {
		t.Errorf("modules %v, kernel parameters %v", plan.Modules, plan.Sysctl)
	}
}
