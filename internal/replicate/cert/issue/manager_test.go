package issue_test

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	certificates "k8s.io/api/certificates/v1"
	"k8s.io/client-go/util/certificate"

	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/issue"
)

// pair is a certificate of a node with its key, in PEM.
func pair(t *testing.T, a issue.Authorities, node string, at time.Time) (text, key []byte) {
	t.Helper()
	k := newKey(t)
	csr := request(t, k, issue.Template(node))
	csr.Spec.Extra["authentication.kubernetes.io/node-name"] = certificates.ExtraValue{node}
	condition(csr, certificates.CertificateApproved)
	signer, err := a.Signer(at)
	check(t, err)
	text, err = signer.Sign(issue.Decide(csr, users), at, rand.Reader)
	check(t, err)
	der, err := x509.MarshalECPrivateKey(k)
	check(t, err)
	return text, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

func TestACertificateOutlivesItsProcessIfItServes(t *testing.T) {
	today := time.Now() // client-go and crypto/x509 judge by the clock
	a := after(t, nil, today)
	known := func() (*x509.CertPool, error) { return a.Pool(), nil }
	for name, test := range map[string]struct {
		node   string
		roots  func() (*x509.CertPool, error)
		damage bool
		want   bool
	}{
		"it serves":                         {node: "alpha", roots: known, want: true},
		"the authorities are not known yet": {node: "alpha", roots: func() (*x509.CertPool, error) { return nil, errors.New("no file") }, want: true},
		"another node's":                    {node: "beta", roots: known},
		"of an authority that is gone":      {node: "alpha", roots: func() (*x509.CertPool, error) { return after(t, nil, today).Pool(), nil }},
		"damaged":                           {node: "alpha", roots: known, damage: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "keys")
			first, err := issue.NewKept(dir, "guard", "alpha", known, logr.Discard())
			check(t, err)
			text, key := pair(t, a, "alpha", today)
			_, err = first.Update(text, key)
			check(t, err)
			if test.damage {
				check(t, os.WriteFile(filepath.Join(dir, "guard-current.pem"), []byte("x"), 0o600))
			}
			second, err := issue.NewKept(dir, "guard", test.node, test.roots, logr.Discard())
			check(t, err)
			got, err := second.Current()
			if _, none := errors.AsType[*certificate.NoCertKeyError](err); (got != nil) != test.want || none == test.want {
				t.Fatalf("got %v, %v", got, err)
			}
			text, key = pair(t, a, test.node, today)
			if _, err := second.Update(text, key); err != nil {
				t.Errorf("the next one is not kept: %v", err)
			}
		})
	}
}

func TestTheKeyOfANodeIsForRootAlone(t *testing.T) {
	today := time.Now() // client-go and crypto/x509 judge by the clock
	dir := filepath.Join(t.TempDir(), "keys")
	a := after(t, nil, today)
	kept, err := issue.NewKept(dir, "agent", "alpha", func() (*x509.CertPool, error) { return a.Pool(), nil }, logr.Discard())
	check(t, err)
	_, err = kept.Update(pair(t, a, "alpha", today))
	check(t, err)
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "agent-current.pem"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestAuthoritiesInAFileAreReadEachTime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ca.crt")
	if _, err := issue.ReadRoots(path); err == nil {
		t.Error("without a file there are authorities")
	}
	a := after(t, nil, now)
	for _, text := range [][]byte{a.Roots(), slices.Concat(a.Roots(), after(t, nil, now).Roots())} {
		check(t, os.WriteFile(path, text, 0o600))
		want, err := issue.ParseRoots(text)
		check(t, err)
		pool, err := issue.ReadRoots(path)
		check(t, err)
		for _, c := range want {
			if trustsItself(pool, c) != nil {
				t.Error("an authority of the file is not trusted")
			}
		}
	}
	check(t, os.WriteFile(path, []byte("x"), 0o600))
	if _, err := issue.ReadRoots(path); err == nil {
		t.Error("a file of something else has authorities")
	}
}

func trustsItself(pool *x509.CertPool, c *x509.Certificate) error {
	_, err := c.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now})
	return err
}

func TestAControllersCertificateEndsWithItsProcess(t *testing.T) {
	var m issue.Memory
	if _, err := m.Current(); err == nil {
		t.Error("a process that has just begun has a certificate")
	}
	text, key := pair(t, after(t, nil, now), "alpha", now)
	if got, err := m.Update(text, key); err != nil || got.Leaf == nil || got.Leaf.DNSNames[0] != cert.Name("alpha") {
		t.Errorf("got %+v, %v", got, err)
	}
	if got, err := m.Update(text, []byte("x")); err == nil || got != nil && got.Leaf != nil {
		t.Errorf("a certificate without its key is %v, %v", got, err)
	}
}
