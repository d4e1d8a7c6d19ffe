package issue

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"time"

	"berth.dev/berth/internal/replicate/cert"
)

const (
	// AuthorityLifetime is how long an authority is valid. Its successor is made when a third is left.
	AuthorityLifetime = 365 * 24 * time.Hour
	renewAuthority    = AuthorityLifetime / 3
	// Announced is how long a successor is trusted before it signs. The kubelet brings the new
	// certificate to each node within minutes; a node that it does not reach for a day gets no
	// certificate of its own either.
	Announced = 24 * time.Hour
	// maxAuthorities are the most that are read: two in the ordinary course.
	maxAuthorities = 8
	authorityName  = "berth.dev replication authority"
)

// PEM types of what an authority is kept as.
const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

// Authorities are all that are trusted, in the order in which they were made. At most one signs at a time.
type Authorities []Authority

// Next returns the authorities as they are to be: those that have expired are gone, and if the newest ends
// within a third of its life, or there is none, a new one is at the end. changed says whether anything is
// different. A certificate never outlives its authority, so nothing lives that an expired one has signed.
func (a Authorities) Next(now time.Time, random io.Reader) (next Authorities, changed bool, err error) {
	next = slices.DeleteFunc(slices.Clone(a), func(o Authority) bool { return !now.Before(o.Certificate.NotAfter) })
	changed = len(next) < len(a)
	if len(next) > 0 && next[len(next)-1].Certificate.NotAfter.Sub(now) >= renewAuthority {
		return next, changed, nil
	}
	if len(next) >= maxAuthorities {
		return nil, false, fmt.Errorf("there are %d authorities already, and no clock makes so many: compare the clocks of the controllers' nodes", len(next))
	}
	made, err := newAuthority(now, random)
	if err != nil {
		return nil, false, fmt.Errorf("making an authority of nodes' certificates: %w", err)
	}
	return append(next, made), true, nil
}

// Signer returns the newest authority that has been announced for long enough, else the oldest one.
func (a Authorities) Signer(now time.Time) (Authority, error) {
	var signer *Authority
	for i := range a {
		c := a[i].Certificate
		if now.Before(c.NotBefore) || !now.Before(c.NotAfter) {
			continue
		}
		if signer == nil || now.Sub(c.NotBefore.Add(backdate)) >= Announced {
			signer = &a[i]
		}
	}
	if signer == nil {
		return Authority{}, errors.New("no authority of nodes' certificates is valid now: compare the clocks of the controllers' nodes")
	}
	return *signer, nil
}

// Roots returns the certificates in PEM.
func (a Authorities) Roots() []byte {
	var out bytes.Buffer
	for i := range a {
		_ = pem.Encode(&out, &pem.Block{Type: pemCertificate, Bytes: a[i].Certificate.Raw}) // a buffer takes all
	}
	return out.Bytes()
}

// Pool returns the certificates as those that a connection trusts.
func (a Authorities) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for i := range a {
		pool.AddCert(a[i].Certificate)
	}
	return pool
}

// Keys returns the keys in PEM, in the order of Roots.
func (a Authorities) Keys() ([]byte, error) {
	var out bytes.Buffer
	for i := range a {
		der, err := x509.MarshalPKCS8PrivateKey(a[i].Key)
		if err != nil {
			return nil, fmt.Errorf("encoding the key of an authority: %w", err)
		}
		_ = pem.Encode(&out, &pem.Block{Type: pemKey, Bytes: der}) // a buffer takes all
	}
	return out.Bytes(), nil
}

// ParseAuthorities reads what Roots and Keys have written. Anything else is an error: a certificate that is
// no authority's, a key of another one, and text that is neither.
func ParseAuthorities(roots, keys []byte) (Authorities, error) {
	certificates, err := ParseRoots(roots)
	if err != nil {
		return nil, err
	}
	ders, err := blocks(keys, pemKey)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the keys: %w", err)
	case len(ders) != len(certificates):
		return nil, fmt.Errorf("there are %d certificates and %d keys", len(certificates), len(ders))
	}
	var out Authorities
	for i, certificate := range certificates {
		key, err := x509.ParsePKCS8PrivateKey(ders[i])
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		signer, ok := key.(*ecdsa.PrivateKey)
		if !ok || !signer.PublicKey.Equal(certificate.PublicKey) {
			return nil, fmt.Errorf("key %d is not that of certificate %d", i+1, i+1)
		}
		out = append(out, Authority{Certificate: certificate, Key: signer})
	}
	return out, nil
}

// ParseRoots reads the certificates of authorities.
func ParseRoots(roots []byte) ([]*x509.Certificate, error) {
	ders, err := blocks(roots, pemCertificate)
	if err != nil {
		return nil, fmt.Errorf("the certificates: %w", err)
	}
	var out []*x509.Certificate
	for i, der := range ders {
		c, err := x509.ParseCertificate(der)
		switch {
		case err != nil:
			return nil, fmt.Errorf("certificate %d: %w", i+1, err)
		case !c.IsCA || c.KeyUsage&x509.KeyUsageCertSign == 0 || c.Subject.CommonName != authorityName:
			return nil, fmt.Errorf("certificate %d is of %s, and not of an authority that Berth has made", i+1, c.Subject)
		}
		if err := c.CheckSignatureFrom(c); err != nil {
			return nil, fmt.Errorf("certificate %d has not signed itself: %w", i+1, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// blocks are the contents of a text of PEM, all of one type.
func blocks(text []byte, kind string) (out [][]byte, err error) {
	for rest := bytes.TrimSpace(text); len(rest) > 0; rest = bytes.TrimSpace(rest) {
		var block *pem.Block
		begins := bytes.HasPrefix(rest, []byte("-----BEGIN ")) // else Decode skips what is before
		block, rest = pem.Decode(rest)
		switch {
		case !begins || block == nil || block.Type != kind:
			return nil, fmt.Errorf("the text is not PEM of %s alone", kind)
		case len(out) == maxAuthorities:
			return nil, fmt.Errorf("there are more than %d", maxAuthorities)
		}
		out = append(out, block.Bytes)
	}
	if len(out) == 0 {
		return nil, errors.New("there are none")
	}
	return out, nil
}

// newAuthority makes one that can sign names of nodes and of controllers, and nothing else.
func newAuthority(now time.Time, random io.Reader) (a Authority, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), random)
	if err != nil {
		return a, err
	}
	serial := make([]byte, 16)
	if _, err := io.ReadFull(random, serial); err != nil {
		return a, err
	}
	template := &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial), Subject: pkix.Name{CommonName: authorityName},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(AuthorityLifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
		PermittedDNSDomainsCritical: true, PermittedDNSDomains: cert.Domains(),
	}
	der, err := x509.CreateCertificate(random, template, template, key.Public(), key)
	if err != nil {
		return a, err
	}
	certificate, err := x509.ParseCertificate(der)
	return Authority{Certificate: certificate, Key: crypto.Signer(key)}, err
}
