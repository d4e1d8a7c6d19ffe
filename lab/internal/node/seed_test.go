package node

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/lab/internal/guest"
)

func config() Config {
	return Config{
		Name: "node1", Address: netip.MustParsePrefix("10.77.0.10/24"), MAC: "02:00:00:00:00:01",
		Gateway: netip.MustParseAddr("10.77.0.1"), Pods: netip.MustParsePrefix("10.88.1.0/24"),
		ClusterPods: netip.MustParsePrefix("10.88.0.0/16"), ClusterDNS: netip.MustParseAddr("10.96.0.10"), Domain: "cluster.local",
		PauseImage: "localhost/pause:1",
		CA:         []byte("ca"), Kubeconfig: []byte("kubeconfig"), Proxy: []byte("proxy"),
		ServingCert: []byte("cert"), ServingKey: []byte("key"),
	}
}

func seed(t *testing.T, c Config) guest.Seed {
	t.Helper()
	s, err := Seed(c)
	if err != nil {
		t.Fatal(err)
	}
	s.Plan.Hostname, s.Plan.Token = c.Name, "0123456789abcdef" // as the guest package does
	return s
}

func content(t *testing.T, s guest.Seed, path string) string {
	t.Helper()
	i := slices.IndexFunc(s.Files, func(f guest.File) bool { return f.Path == path })
	if i < 0 {
		t.Fatalf("the seed has no %s", path)
	}
	return string(s.Files[i].Data)
}

func TestSeedIsOneAGuestAccepts(t *testing.T) {
	s := seed(t, config())
	if err := s.Plan.Validate(); err != nil {
		t.Error(err)
	}
	machine := guest.Spec{Name: "node1", CPUs: 1, Memory: 1 << 30, Tap: "tap", Seed: s}
	if err := machine.Validate(); err != nil {
		t.Error(err)
	}
}

func TestFilesTheServicesNameAreInTheSeedOrOnTheToolsDisk(t *testing.T) {
	s := seed(t, config())
	tools := Programs{}.Files()
	for _, service := range s.Plan.Services {
		for _, argument := range service.Argv {
			place, onTools := strings.CutPrefix(argument, "/opt/lab/")
			switch {
			case onTools && tools[place] == "" && !slices.Contains(keys(tools), place):
				t.Errorf("service %s: %s is not on the tools disk", service.Name, argument)
			case strings.HasPrefix(argument, "/etc/"):
				content(t, s, argument)
			}
		}
	}
	var kubelet struct {
		TLSCertFile, TLSPrivateKeyFile string
		Authentication                 struct{ X509 struct{ ClientCAFile string } }
	}
	if err := json.Unmarshal([]byte(content(t, s, kubeletConfig)), &kubelet); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		kubelet.TLSCertFile: "cert", kubelet.TLSPrivateKeyFile: "key",
		kubelet.Authentication.X509.ClientCAFile: "ca", kubeconfig: "kubeconfig",
	} {
		if got := content(t, s, path); got != want {
			t.Errorf("%s holds %q, want %q", path, got, want)
		}
	}
}

func keys(m map[string]string) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	return all
}

func TestSecretsAreReadableByRootOnly(t *testing.T) {
	for _, f := range seed(t, config()).Files {
		secret := slices.Contains([]string{"key", "kubeconfig", "proxy"}, string(f.Data))
		if secret && f.Mode != 0o600 {
			t.Errorf("%s has mode %o", f.Path, f.Mode)
		}
	}
}

func TestContainerdIsReadyBeforeTheKubeletStarts(t *testing.T) {
	services := seed(t, config()).Plan.Services
	if services[0].Name != Containerd || services[0].Socket == "" || services[1].Name != Kubelet {
		t.Errorf("services begin with %+v, %+v", services[0], services[1])
	}
}

func TestOnlyTheControlNodeKeepsPodsOff(t *testing.T) {
	for _, control := range []bool{true, false} {
		c := config()
		c.Control = control
		kubelet := content(t, seed(t, c), kubeletConfig)
		if got := strings.Contains(kubelet, "node-role.kubernetes.io/control-plane"); got != control {
			t.Errorf("a node with Control %v has the taint: %v", control, got)
		}
	}
}

func TestPodsGetAddressesOfTheirNodeAndThePinnedPauseImage(t *testing.T) {
	s := seed(t, config())
	if network := content(t, s, pluginConfigDir+"/10-lab.conflist"); !strings.Contains(network, `"subnet": "10.88.1.0/24"`) {
		t.Errorf("pod network is %s", network)
	}
	if runtime := content(t, s, containerdConfig); !strings.Contains(runtime, `sandbox = "localhost/pause:1"`) {
		t.Errorf("containerd's configuration is %s", runtime)
	}
}

func TestNodesDifferInNameAndMachineIDAndKeepThem(t *testing.T) {
	other := config()
	other.Name = "node2"
	id := func(c Config) string { return content(t, seed(t, c), "/etc/machine-id") }
	first, again, second := id(config()), id(config()), id(other)
	if first != again || first == second || len(second) != 33 {
		t.Errorf("machine ids are %q, %q again and %q", first, again, second)
	}
	if hosts := content(t, seed(t, other), "/etc/hosts"); !strings.Contains(hosts, "10.77.0.10 node2") {
		t.Errorf("/etc/hosts is %q", hosts)
	}
}

func TestSeedNamesTheMissingOrWrongPartOfAConfiguration(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"address":               func(c *Config) { c.Address = netip.Prefix{} },
		"pod network":           func(c *Config) { c.Pods = netip.Prefix{} },
		"network of all pods":   func(c *Config) { c.ClusterPods = netip.Prefix{} },
		"domain":                func(c *Config) { c.Domain = "" },
		"proxy's kubeconfig":    func(c *Config) { c.Proxy = nil },
		"kubeconfig":            func(c *Config) { c.Kubeconfig = nil },
		"certificate authority": func(c *Config) { c.CA = nil },
		"serving key":           func(c *Config) { c.ServingKey = nil },
		"is not in":             func(c *Config) { c.Gateway = netip.MustParseAddr("192.0.2.1") },
	} {
		t.Run(want, func(t *testing.T) {
			c := config()
			spoil(&c)
			if _, err := Seed(c); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
