package issue

import (
	"crypto/tls"
	"crypto/x509"
	"path/filepath"

	"berth.dev/berth/internal/replicate/cert"
)

// Borrowed is the certificate that another process of the node keeps: a cert.Source. It is read at each
// handshake, so it is renewed when that process renews it, and no request is made for it.
type Borrowed struct {
	// Directory and Name are those that the other process gave to NewKept.
	Directory, Name string
	// Authorities returns those that are trusted now: see ReadRoots.
	Authorities func() (*x509.CertPool, error)
}

var _ cert.Source = Borrowed{}

// Current implements cert.Source. A file that is missing or cannot be read is no certificate.
func (b Borrowed) Current() *tls.Certificate {
	path := filepath.Join(b.Directory, b.Name+"-current.pem") // as client-go's file store names it
	pair, err := tls.LoadX509KeyPair(path, path)
	if err != nil {
		return nil
	}
	return &pair
}

// Roots implements cert.Source.
func (b Borrowed) Roots() (*x509.CertPool, error) { return b.Authorities() }
