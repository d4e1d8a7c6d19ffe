package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Authority signs certificates.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	// File has the authority's certificate.
	File string
}

// Pair is a certificate with its key, in files.
type Pair struct{ CertFile, KeyFile string }

// New makes an authority that no client or server trusts yet.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{key: newKey(t), File: filepath.Join(t.TempDir(), "ca.crt")}
	var err error
	if a.certificate, err = cert.NewSelfSignedCACert(cert.Config{CommonName: "an authority for tests"}, a.key); err != nil {
		t.Fatal(err)
	}
	write(t, a.File, pemOf(t, a.certificate))
	return a
}

// Pool returns a pool with this authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	return pool
}

// Issue signs a certificate for servers on loopback and for clients, valid from now
// on for an hour.
func (a *Authority) Issue(t testing.TB, name string) Pair {
	t.Helper()
	dir := t.TempDir()
	p := Pair{CertFile: filepath.Join(dir, "tls.crt"), KeyFile: filepath.Join(dir, "tls.key")}
	a.Renew(t, p, name)
	return p
}

// Renew replaces a certificate and its key by new ones, as the kubelet does with a
// Secret that has changed.
func (a *Authority) Renew(t testing.TB, p Pair, name string) {
	t.Helper()
	key := newKey(t)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: a.certificate.NotBefore, NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, p.KeyFile, secret)
	write(t, p.CertFile, pemOf(t, signed))
}

// Load reads the pair, for a client or a server within the test.
func (p Pair) Load(t testing.TB) tls.Certificate {
	t.Helper()
	loaded, err := tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func pemOf(t testing.TB, c *x509.Certificate) []byte {
	t.Helper()
	data, err := cert.EncodeCertificates(c)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// write replaces a file atomically, so that no reader sees half of it.
func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}
