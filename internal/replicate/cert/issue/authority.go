package issue

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"time"

	"berth.dev/berth/internal/replicate/cert"
)

const (
	// Lifetime of a node's certificate. The agent renews it when 70 to 90 % have passed, so that an API
	// server that is away for half a day stops no replication.
	Lifetime = 7 * 24 * time.Hour
	// backdate lets a node believe a certificate though its clock is an hour late.
	backdate = time.Hour + 5*time.Minute
)

// Authority signs nodes' certificates.
type Authority struct {
	Certificate *x509.Certificate
	Key         crypto.Signer
}

// Sign returns the certificate that d decides to sign, in PEM. Of the request it takes the key only: all
// else follows from the node's name.
func (a Authority) Sign(d Answer, now time.Time, random io.Reader) ([]byte, error) {
	if d.Verb != Sign {
		return nil, fmt.Errorf("the decision is %s and not %s", d.Verb, Sign)
	}
	end := now.Add(Lifetime)
	if end.After(a.Certificate.NotAfter) {
		end = a.Certificate.NotAfter
	}
	if !end.After(now) {
		return nil, fmt.Errorf("the authority of nodes' certificates has expired at %s", end.Format(time.RFC3339))
	}
	serial := make([]byte, 16)
	if _, err := io.ReadFull(random, serial); err != nil {
		return nil, fmt.Errorf("choosing a serial number: %w", err)
	}
	name := cert.Name(d.Node)
	template := &x509.Certificate{
		SerialNumber:          new(big.Int).SetBytes(serial),
		Subject:               pkix.Name{CommonName: name},
		DNSNames:              []string{name},
		NotBefore:             now.Add(-backdate),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(random, template, a.Certificate, d.Request.PublicKey, a.Key)
	if err != nil {
		return nil, fmt.Errorf("signing the certificate of node %s: %w", d.Node, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
