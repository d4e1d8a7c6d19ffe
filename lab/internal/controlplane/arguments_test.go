package controlplane

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/lab/internal/pki"
)

func testConfig(t *testing.T) Config {
	t.Helper()
	authority, err := pki.Open(filepath.Join(t.TempDir(), "pki"))
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Programs: "/release", Etcd: "/built", CoreDNS: "/names", Dir: "/state", NetNS: "/run/netns/x",
		Address: netip.MustParseAddr("10.77.0.1"), ServiceIP: netip.MustParseAddr("10.96.0.1"),
		Services: netip.MustParsePrefix("10.96.0.0/16"), Authority: authority,
		DNS: netip.MustParseAddr("10.77.0.3"), DNSService: netip.MustParseAddr("10.96.0.10"),
	}
}

func TestEveryFileTheArgumentsNameIsMade(t *testing.T) {
	c := testConfig(t)
	if err := c.writeCertificates(); err != nil {
		t.Fatal(err)
	}
	dir := c.Authority.Path("")
	named := 0
	for _, name := range Components {
		for _, arg := range c.spec(name).Args {
			_, value, _ := strings.Cut(arg, "=")
			if !strings.HasPrefix(value, dir) {
				continue
			}
			named++
			if _, err := os.Stat(value); err != nil {
				t.Errorf("%s is started with %s: %v", name, arg, err)
			}
		}
	}
	if named < 10 {
		t.Errorf("only %d arguments name a certificate or kubeconfig", named)
	}
}

func TestEtcdAndCoreDNSMayComeFromElsewhere(t *testing.T) {
	c := testConfig(t)
	for name, want := range map[string]string{
		etcd: "/built/etcd", apiServer: "/release/kube-apiserver", scheduler: "/release/kube-scheduler",
		DNS: "/names/coredns",
	} {
		if got := c.spec(name).Path; got != want {
			t.Errorf("%s is started from %s, want %s", name, got, want)
		}
	}
}

func TestEverythingRunsInTheNamespaceWithALogOfItsOwn(t *testing.T) {
	c := testConfig(t)
	var logs []string
	for _, name := range Components {
		s := c.spec(name)
		if s.NetNS != c.NetNS {
			t.Errorf("%s runs in namespace %q", name, s.NetNS)
		}
		logs = append(logs, s.Log)
	}
	slices.Sort(logs)
	if len(slices.Compact(logs)) != len(Components) {
		t.Errorf("components share logs: %v", logs)
	}
}

func TestThePortOfTheServiceIsThePortOfTheServer(t *testing.T) {
	if got := testConfig(t).Server(); got != "https://10.77.0.1:443" {
		t.Errorf("Server = %s; pods reach it at the Service's address only on port 443", got)
	}
}

func TestStockTimeoutsLeaveKubernetesItsDefaults(t *testing.T) {
	timing := func(c Config) int {
		n := 0
		for _, arg := range slices.Concat(c.apiServerArgs(), c.controllerManagerArgs()) {
			if strings.Contains(arg, "toleration-seconds") || strings.Contains(arg, "sync-period") {
				n++
			}
		}
		return n
	}
	c := testConfig(t)
	if timing(c) != 3 {
		t.Errorf("%d time-outs are set, want 3", timing(c))
	}
	c.StockTimeouts = true
	if timing(c) != 0 {
		t.Errorf("%d time-outs are set", timing(c))
	}
}
