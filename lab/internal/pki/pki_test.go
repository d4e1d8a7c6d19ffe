package pki_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/lab/internal/pki"
)

func open(t *testing.T, dir string) *pki.Authority {
	t.Helper()
	a, err := pki.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *pki.Authority, name string, s pki.Subject) pki.Pair {
	t.Helper()
	pair, err := a.Issue(name, s)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

func parse(t *testing.T, data []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(data)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestACertificateIsValidForItsSubjectOnly(t *testing.T) {
	a := open(t, t.TempDir())
	pair := issue(t, a, "kubelet", pki.Subject{
		Name: "system:node:n1", Groups: []string{"system:nodes"},
		IPs: []netip.Addr{netip.MustParseAddr("10.77.0.11")}, DNS: []string{"n1"},
	})
	if _, err := tls.X509KeyPair(pair.Cert, pair.Key); err != nil {
		t.Fatalf("certificate and key do not match: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(a.CertPEM())
	cert := parse(t, pair.Cert)
	for host, valid := range map[string]bool{"n1": true, "10.77.0.11": true, "n2": false, "10.77.0.12": false} {
		_, err := cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host})
		if (err == nil) != valid {
			t.Errorf("certificate for %s: %v, want valid=%v", host, err, valid)
		}
	}
	if cert.Subject.CommonName != "system:node:n1" || !cmp.Equal(cert.Subject.Organization, []string{"system:nodes"}) {
		t.Errorf("subject is %v", cert.Subject)
	}
}

func TestADirectoryKeepsItsAuthorityAndCertificates(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir)
	before := issue(t, first, "admin", pki.Subject{Name: "admin"})
	second := open(t, dir)
	after := issue(t, second, "admin", pki.Subject{Name: "admin"})
	if diff := cmp.Diff(string(first.CertPEM()), string(second.CertPEM())); diff != "" {
		t.Errorf("authority changed:\n%s", diff)
	}
	if diff := cmp.Diff(string(before.Cert), string(after.Cert)); diff != "" {
		t.Errorf("certificate changed:\n%s", diff)
	}
}

// The nodes of a cluster start at once, and their kube-proxies are one user.
func TestACertificateThatManyAskForAtOnceIsIssuedOnce(t *testing.T) {
	a, pairs := open(t, t.TempDir()), make([]pki.Pair, 100)
	var group sync.WaitGroup
	begin := make(chan struct{})
	for i := range pairs {
		group.Go(func() {
			<-begin
			var err error
			if pairs[i], err = a.Issue("kube-proxy", pki.Subject{Name: "system:kube-proxy"}); err != nil {
				t.Error(err)
			}
		})
	}
	close(begin)
	group.Wait()
	for _, p := range append(pairs, issue(t, a, "kube-proxy", pki.Subject{})) {
		if _, err := tls.X509KeyPair(p.Cert, p.Key); err != nil || string(p.Cert) != string(pairs[0].Cert) {
			t.Errorf("there are several certificates, or one without its key: %v", err)
		}
	}
}

func TestACertificateWithoutItsKeyIsAnError(t *testing.T) {
	dir := t.TempDir()
	a := open(t, dir)
	issue(t, a, "admin", pki.Subject{Name: "admin"})
	for _, file := range []string{"admin.key", "ca.key"} {
		if err := os.Remove(a.Path(file)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := a.Issue("admin", pki.Subject{Name: "admin"}); err == nil {
		t.Error("a certificate whose key is gone was issued anew")
	}
	if _, err := pki.Open(dir); err == nil {
		t.Error("an authority whose key is gone was opened")
	}
}

func TestKeysAndKubeconfigsArePrivate(t *testing.T) {
	a := open(t, t.TempDir())
	path, err := a.WriteKubeconfig("admin", "https://127.0.0.1:6443", pki.Subject{Name: "admin", Groups: []string{"system:masters"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, a.Path("admin.key"), a.Path("ca.key")} {
		info, err := os.Stat(p)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v; want 0600", p, info.Mode(), err)
		}
	}
	data, _ := os.ReadFile(path)
	if !strings.Contains(string(data), `server: "https://127.0.0.1:6443"`) {
		t.Errorf("kubeconfig does not name the server:\n%s", data)
	}
}
