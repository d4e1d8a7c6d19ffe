package issue_test

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"

	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/issue"
)

const day = 24 * time.Hour

// after returns the authorities as a controller leaves them that looks at this time.
func after(t *testing.T, a issue.Authorities, at time.Time) issue.Authorities {
	t.Helper()
	next, _, err := a.Next(at, rand.Reader)
	check(t, err)
	return next
}

// leaf is a certificate for alpha that the authorities sign.
func leaf(t *testing.T, a issue.Authorities, at time.Time) *x509.Certificate {
	t.Helper()
	signer, err := a.Signer(at)
	check(t, err)
	csr := request(t, newKey(t), issue.Template("alpha"))
	condition(csr, certificates.CertificateApproved)
	text, err := signer.Sign(issue.Decide(csr, users), at, rand.Reader)
	check(t, err)
	block, _ := pem.Decode(text)
	c, err := x509.ParseCertificate(block.Bytes)
	check(t, err)
	return c
}

func trusts(a issue.Authorities, c *x509.Certificate, at time.Time) error {
	_, err := c.Verify(x509.VerifyOptions{Roots: a.Pool(), CurrentTime: at, DNSName: c.DNSNames[0], KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	return err
}

func TestThroughFiveYearsEachCertificateIsTrustedByWhoKnowsTheAuthoritiesOfTheDayBefore(t *testing.T) {
	var a, before issue.Authorities
	var live []*x509.Certificate
	signers := map[string]bool{}
	for d := range 5 * 365 {
		at := now.Add(time.Duration(d) * day)
		before, a = a, after(t, a, at)
		if len(a) > 2 {
			t.Fatalf("on day %d there are %d authorities", d, len(a))
		}
		live = slices.DeleteFunc(append(live, leaf(t, a, at)), func(c *x509.Certificate) bool { return at.After(c.NotAfter) })
		for _, c := range []*x509.Certificate{live[0], live[len(live)-1]} {
			signers[string(c.AuthorityKeyId)] = true
			if err := trusts(a, c, at); err != nil {
				t.Fatalf("on day %d a certificate that is valid is not trusted: %v", d, err)
			}
			if err := trusts(before, c, at); d > 0 && err != nil {
				t.Fatalf("on day %d a node that knows the authorities of the day before does not trust: %v", d, err)
			}
		}
	}
	if len(signers) < 6 {
		t.Errorf("in five years %d authorities have signed", len(signers))
	}
}

func TestASuccessorIsMadeWhenAThirdIsLeftAndSignsADayLater(t *testing.T) {
	first := after(t, nil, now)
	early := now.Add(issue.AuthorityLifetime*2/3 - time.Minute)
	if next, changed, _ := first.Next(early, rand.Reader); changed || len(next) != 1 {
		t.Errorf("too early there are %d authorities", len(next))
	}
	due := early.Add(2 * time.Minute)
	both := after(t, first, due)
	for when, want := range map[time.Time]int{due: 0, due.Add(issue.Announced - time.Minute): 0, due.Add(issue.Announced): 1} {
		signer, err := both.Signer(when)
		if err != nil || signer.Certificate != both[want].Certificate {
			t.Errorf("%s later authority %d does not sign: %v", when.Sub(due), want, err)
		}
	}
}

func TestAnAuthorityThatIsAloneSignsAtOnce(t *testing.T) {
	old := after(t, nil, now)
	late := now.Add(2 * issue.AuthorityLifetime)
	fresh := after(t, old, late)
	if signer, err := fresh.Signer(late); err != nil || len(fresh) != 1 || signer.Certificate == old[0].Certificate {
		t.Errorf("of %d authorities none signs: %v", len(fresh), err)
	}
	if _, err := fresh.Signer(now); err == nil || !strings.Contains(err.Error(), "clocks") {
		t.Errorf("a controller whose clock is late signs: %v", err)
	}
}

func TestAnAuthorityIsGoodForNamesOfNodesAndControllersAlone(t *testing.T) {
	a := after(t, nil, now)
	for name, want := range map[string]bool{cert.Name("10.0.0.1"): true, cert.Name(cert.Controllers): true, "kubernetes.default.svc": false} {
		key := newKey(t)
		template := &x509.Certificate{SerialNumber: a[0].Certificate.SerialNumber, DNSNames: []string{name}, NotBefore: now, NotAfter: now.Add(day)}
		der, err := x509.CreateCertificate(rand.Reader, template, a[0].Certificate, key.Public(), a[0].Key)
		check(t, err)
		c, err := x509.ParseCertificate(der)
		check(t, err)
		_, err = c.Verify(x509.VerifyOptions{Roots: a.Pool(), CurrentTime: now, DNSName: name})
		if (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAuthoritiesAreReadAsTheyWereWritten(t *testing.T) {
	a := after(t, after(t, nil, now), now.Add(issue.AuthorityLifetime*5/6))
	keys, err := a.Keys()
	check(t, err)
	got, err := issue.ParseAuthorities(a.Roots(), keys)
	check(t, err)
	if len(got) != 2 || !got[0].Certificate.Equal(a[0].Certificate) || !got[1].Certificate.Equal(a[1].Certificate) {
		t.Errorf("got %d authorities", len(got))
	}
}

func TestWhatIsNoAuthorityWithItsKeyIsRefused(t *testing.T) {
	a, other := after(t, nil, now), after(t, nil, now)
	keys, err := a.Keys()
	check(t, err)
	otherKeys, err := other.Keys()
	check(t, err)
	roots := a.Roots()
	node := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf(t, a, now).Raw})
	for name, test := range map[string]struct{ roots, keys []byte }{
		"nothing":                         {nil, nil},
		"no key":                          {roots, nil},
		"no certificate":                  {nil, keys},
		"the key of another":              {roots, otherKeys},
		"two certificates and one key":    {slices.Concat(roots, other.Roots()), keys},
		"the keys in another order":       {slices.Concat(roots, other.Roots()), slices.Concat(otherKeys, keys)},
		"a certificate of a node":         {node, keys},
		"a certificate that is cut":       {roots[:len(roots)-9], keys},
		"text before":                     {slices.Concat([]byte("x\n"), roots), keys},
		"text behind":                     {slices.Concat(roots, []byte("x\n")), keys},
		"a key where a certificate is":    {keys, keys},
		"a certificate that is no ASN.1":  {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("x")}), keys},
		"an authority that is not ours":   {pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: newAuthority(t, now.Add(day)).Certificate.Raw}), keys},
		"more authorities than there are": {bytes.Repeat(roots, 9), bytes.Repeat(keys, 9)},
	} {
		if got, err := issue.ParseAuthorities(test.roots, test.keys); err == nil || got != nil {
			t.Errorf("%s: read as %d authorities", name, len(got))
		}
	}
}
