package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// lifetime of every certificate. A cluster lives for hours, rarely for weeks.
const lifetime = 365 * 24 * time.Hour

// Authority is a certificate authority that keeps its certificates in a directory.
type Authority struct {
	dir string
	// issuing is held while a certificate is looked for and made: nodes that start at once ask for the same one.
	issuing sync.Mutex
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
}

// Pair is a certificate and its private key, in PEM.
type Pair struct {
	Cert []byte
	Key  []byte
}

// Subject names the user of a certificate, and the addresses where it may serve.
type Subject struct {
	Name   string   // common name: the Kubernetes user
	Groups []string // organisations: the Kubernetes groups
	IPs    []netip.Addr
	DNS    []string
}

// Open opens the authority in dir, and makes it first if there is none.
func Open(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating certificate directory: %w", err)
	}
	pair, err := load(dir, "ca")
	if errors.Is(err, fs.ErrNotExist) {
		pair, err = create(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("opening certificate authority: %w", err)
	}
	a := &Authority{dir: dir}
	if a.cert, err = parseCertificate(pair.Cert); err != nil {
		return nil, fmt.Errorf("opening certificate authority: %w", err)
	}
	if a.key, err = parseKey(pair.Key); err != nil {
		return nil, fmt.Errorf("opening certificate authority: %w", err)
	}
	return a, nil
}

func create(dir string) (Pair, error) {
	template, err := newTemplate(pkix.Name{CommonName: "berth-lab"})
	if err != nil {
		return Pair{}, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	return save(dir, "ca", template, template, key, key)
}

// CertPEM returns the authority's own certificate.
func (a *Authority) CertPEM() []byte { return encode("CERTIFICATE", a.cert.Raw) }

// Issue returns the certificate kept under name, and issues it first if there
// is none. The subject of a certificate that exists already is not compared:
// a name means one subject for the life of the directory.
func (a *Authority) Issue(name string, s Subject) (Pair, error) {
	a.issuing.Lock()
	defer a.issuing.Unlock()
	pair, err := load(a.dir, name)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return pair, err
	}
	template, err := newTemplate(pkix.Name{CommonName: s.Name, Organization: s.Groups})
	if err != nil {
		return Pair{}, fmt.Errorf("issuing certificate %s: %w", name, err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = s.DNS
	for _, ip := range s.IPs {
		template.IPAddresses = append(template.IPAddresses, ip.AsSlice())
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("issuing certificate %s: %w", name, err)
	}
	pair, err = save(a.dir, name, template, a.cert, key, a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("issuing certificate %s: %w", name, err)
	}
	return pair, nil
}

// Path returns where a file of the authority is, e.g. "ca.crt".
func (a *Authority) Path(file string) string { return filepath.Join(a.dir, file) }

func newTemplate(name pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      name,
		NotBefore:    now.Add(-time.Hour), // a guest's clock may be behind
		NotAfter:     now.Add(lifetime),
	}, nil
}

func save(dir, name string, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (Pair, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		return Pair{}, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return Pair{}, err
	}
	pair := Pair{Cert: encode("CERTIFICATE", der), Key: encode("EC PRIVATE KEY", keyDER)}
	// The certificate comes last: if it is there, load expects the key, too.
	if err := writeFile(filepath.Join(dir, name+".key"), pair.Key); err != nil {
		return Pair{}, err
	}
	return pair, writeFile(filepath.Join(dir, name+".crt"), pair.Cert)
}

func load(dir, name string) (Pair, error) {
	cert, err := os.ReadFile(filepath.Join(dir, name+".crt"))
	if err != nil {
		return Pair{}, err
	}
	key, err := os.ReadFile(filepath.Join(dir, name+".key"))
	if err != nil {
		// The error is not wrapped: a certificate without its key is damage, and must
		// not look like a certificate that is still to be made.
		return Pair{}, fmt.Errorf("reading the key of certificate %s: %v", name, err) //nolint:errorlint // a missing key must not pass for a missing pair
	}
	return Pair{Cert: cert, Key: key}, nil
}

// writeFile replaces a file by a rename, so that it is never half written.
func writeFile(path string, data []byte) error {
	part := path + ".part"
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func parseCertificate(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("no certificate in the file")
	}
	return x509.ParseCertificate(block.Bytes)
}

func parseKey(data []byte) (*ecdsa.PrivateKey, error) {
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New("no key in the file")
	}
	return x509.ParseECPrivateKey(block.Bytes)
}
