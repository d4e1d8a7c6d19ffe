// Package certtest makes certificates of nodes for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"sync"
	"testing"
	"time"

	"berth.dev/berth/internal/replicate/cert"
)

// Authority signs certificates of nodes.
type Authority struct {
	leaf *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New makes an authority whose certificate never ends.
func New(t testing.TB) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nodes"}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	return &Authority{leaf: leaf, key: key}
}

// Sign returns a certificate with these DNS names that is valid for a day around now.
func (a *Authority) Sign(t testing.TB, now time.Time, names ...string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: names, NotBefore: now.Add(-12 * time.Hour), NotAfter: now.Add(12 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.leaf, key.Public(), a.key)
	must(t, err)
	leaf, err := x509.ParseCertificate(der)
	must(t, err)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Proofs is a cert.Source that a test changes.
type Proofs struct {
	mu    sync.Mutex
	own   *tls.Certificate
	roots *x509.CertPool
}

// Set replaces the certificate.
func (p *Proofs) Set(own *tls.Certificate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.own = own
}

// Current implements cert.Source.
func (p *Proofs) Current() *tls.Certificate {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.own
}

// Roots implements cert.Source.
func (p *Proofs) Roots() (*x509.CertPool, error) { return p.roots, nil }

// Node returns the identity of a node with a certificate of its own name.
func (a *Authority) Node(t testing.TB, name string) cert.Identity {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(a.leaf)
	return cert.Identity{Node: name, Now: time.Now, Source: &Proofs{own: a.Sign(t, time.Now(), cert.Name(name)), roots: roots}}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
