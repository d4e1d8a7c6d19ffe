package trial

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/issue"
)

// The files of an authority. Those of a node bear its name in place of "ca".
const (
	authority     = "ca"
	authorityCert = authority + ".crt"
	authorityKey  = authority + ".key"
	authorityLife = 365 * 24 * time.Hour
)

// WriteKeys writes the certificate and the key of a node into a directory: the authority's are there, or
// are made first. Certificates are valid for issue.Lifetime. What the node had before is replaced. A name that is no
// node's is refused: files bear it.
func WriteKeys(dir, node string, now time.Time) error {
	if _, err := cert.NodeOf(cert.Name(node)); err != nil {
		return fmt.Errorf("node %q: names of nodes have lower case letters, digits, '-' and '.', and begin and end with a letter or a digit", node)
	}
	if node == authority {
		return fmt.Errorf("node %q: its files would replace those of the authority, %s and %s", node, authorityCert, authorityKey)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	a, err := readAuthority(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if _, there := os.Lstat(filepath.Join(dir, authorityCert)); there == nil {
			return fmt.Errorf("%s has %s and not %s: make the keys where the authority was made, and copy %s.crt and %s.key from there", dir, authorityCert, authorityKey, node, node)
		}
		a, err = makeAuthority(dir, now)
	}
	if err != nil {
		return fmt.Errorf("the authority in %s: %w", dir, err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	d := issue.Answer{Decision: decide.Decision{Verb: issue.Sign}, Node: node, Request: &x509.CertificateRequest{PublicKey: key.Public()}}
	signed, err := a.Sign(d, now, rand.Reader)
	if err != nil {
		return err
	}
	return errors.Join(writeKey(filepath.Join(dir, node+".key"), key), os.WriteFile(filepath.Join(dir, node+".crt"), signed, 0o600))
}

func makeAuthority(dir string, now time.Time) (a issue.Authority, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return a, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "berth replicate check"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(authorityLife),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return a, err
	}
	signed := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := errors.Join(writeKey(filepath.Join(dir, authorityKey), key), os.WriteFile(filepath.Join(dir, authorityCert), signed, 0o600)); err != nil {
		return a, err
	}
	return readAuthority(dir)
}

func readAuthority(dir string) (a issue.Authority, err error) {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, authorityCert), filepath.Join(dir, authorityKey))
	if err != nil {
		return a, err
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return a, fmt.Errorf("its key cannot sign")
	}
	return issue.Authority{Certificate: pair.Leaf, Key: key}, nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// Keys are the certificates of a node in a directory: a cert.Source.
type Keys struct {
	own   *tls.Certificate
	roots *x509.CertPool
}

var _ cert.Source = Keys{}

// ReadKeys reads the certificate of a node, which WriteKeys wrote, and that of the authority.
func ReadKeys(dir, node string) (k Keys, err error) {
	own, err := tls.LoadX509KeyPair(filepath.Join(dir, node+".crt"), filepath.Join(dir, node+".key"))
	if err != nil {
		return k, fmt.Errorf("the certificate of node %s: %w (berth replicate keys --dir %s %s makes it, on the machine that has %s if there is one)", node, err, dir, node, authorityKey)
	}
	roots, err := os.ReadFile(filepath.Join(dir, authorityCert)) //nolint:gosec // the path is the administrator's
	if err != nil {
		return k, err
	}
	k = Keys{own: &own, roots: x509.NewCertPool()}
	if !k.roots.AppendCertsFromPEM(bytes.TrimSpace(roots)) {
		return k, fmt.Errorf("%s in %s is no certificate", authorityCert, dir)
	}
	return k, nil
}

// Current implements cert.Source.
func (k Keys) Current() *tls.Certificate { return k.own }

// Roots implements cert.Source.
func (k Keys) Roots() (*x509.CertPool, error) { return k.roots, nil }
