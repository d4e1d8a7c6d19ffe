package issue_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	certificates "k8s.io/api/certificates/v1"
	certutil "k8s.io/client-go/util/cert"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/issue"
)

const (
	agent      = "system:serviceaccount:berth-system:berth-agent"
	guard      = "system:serviceaccount:berth-system:berth-guard"
	controller = "system:serviceaccount:berth-system:berth-controller"
)

var users = issue.Users{OnNodes: []string{agent, guard}, Controller: controller}

var now = time.Unix(1.8e9, 0)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	return key
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// request is one that the agent of alpha makes.
func request(t *testing.T, key crypto.Signer, template *x509.CertificateRequest) *certificates.CertificateSigningRequest {
	t.Helper()
	text, err := certutil.MakeCSRFromTemplate(key, template)
	check(t, err)
	return &certificates.CertificateSigningRequest{Spec: certificates.CertificateSigningRequestSpec{
		Request: text, SignerName: issue.Signer, Usages: issue.Usages, Username: agent,
		Extra: map[string]certificates.ExtraValue{"authentication.kubernetes.io/node-name": {"alpha"}},
	}}
}

func condition(csr *certificates.CertificateSigningRequest, c certificates.RequestConditionType) {
	csr.Status.Conditions = append(csr.Status.Conditions, certificates.CertificateSigningRequestCondition{Type: c})
}

func TestARequestForTheNodesOwnNameIsApprovedAndThenSigned(t *testing.T) {
	csr := request(t, newKey(t), issue.Template("alpha"))
	d := issue.Decide(csr, users)
	if d.Verb != issue.Approve || d.Reason != issue.ReasonOwnName {
		t.Errorf("the decision is %s because of %s: %s", d.Verb, d.Reason, d.Message)
	}
	if _, err := newAuthority(t, now.Add(time.Hour)).Sign(d, now, rand.Reader); err == nil {
		t.Error("it is signed before it is approved")
	}
	condition(csr, certificates.CertificateApproved)
	if d := issue.Decide(csr, users); d.Verb != issue.Sign || d.Node != "alpha" {
		t.Errorf("the decision is %s because of %s: %s", d.Verb, d.Reason, d.Message)
	}
}

func TestEachUserMayAskForItsOwnNameOnly(t *testing.T) {
	for _, test := range []struct {
		user, name string
		want       decide.Verb
	}{
		{agent, "alpha", issue.Approve}, {guard, "alpha", issue.Approve}, {controller, cert.Controllers, issue.Approve},
		{agent, cert.Controllers, issue.Deny}, {guard, cert.Controllers, issue.Deny}, {controller, "alpha", issue.Deny},
		{agent, "beta", issue.Deny}, {guard, "beta", issue.Deny}, {"", "alpha", issue.Deny},
	} {
		csr := request(t, newKey(t), issue.Template(test.name))
		csr.Spec.Username = test.user
		if d := issue.Decide(csr, users); d.Verb != test.want {
			t.Errorf("%s asks for %s: the decision is %s because of %s", test.user, test.name, d.Verb, d.Reason)
		}
	}
	csr := request(t, newKey(t), issue.Template(cert.Controllers))
	csr.Spec.Username, csr.Spec.Extra = "", nil
	if d := issue.Decide(csr, issue.Users{}); d.Verb != issue.Deny {
		t.Errorf("without a controller, its name is given to a user without one: %s", d.Verb)
	}
}

func TestARequestThatIsFinishedOrNotOursIsIgnored(t *testing.T) {
	tests := map[string]func(*certificates.CertificateSigningRequest){
		"of another signer": func(c *certificates.CertificateSigningRequest) {
			c.Spec.SignerName = "kubernetes.io/kube-apiserver-client"
		},
		"denied": func(c *certificates.CertificateSigningRequest) { condition(c, certificates.CertificateDenied) },
		"failed": func(c *certificates.CertificateSigningRequest) {
			condition(c, certificates.CertificateApproved)
			condition(c, certificates.CertificateFailed)
		},
		"signed": func(c *certificates.CertificateSigningRequest) { c.Status.Certificate = []byte("x") },
	}
	for name, change := range tests {
		csr := request(t, newKey(t), issue.Template("alpha"))
		change(csr)
		if d := issue.Decide(csr, users); d.Verb != issue.Ignore || d.Message == "" {
			t.Errorf("%s: the decision is %s because of %s", name, d.Verb, d.Reason)
		}
	}
}

// refusals are requests that are denied, or fail if another approved them.
var refusals = map[string]struct {
	template func(*x509.CertificateRequest)
	key      func(*testing.T) crypto.Signer
	change   func(*certificates.CertificateSigningRequest)
	want     string
}{
	"another user asks":           {change: func(c *certificates.CertificateSigningRequest) { c.Spec.Username = "system:node:alpha" }, want: issue.ReasonNotAgent},
	"another agent's user asks":   {change: func(c *certificates.CertificateSigningRequest) { c.Spec.Username = agent + "2" }, want: issue.ReasonNotAgent},
	"a token without a node asks": {change: func(c *certificates.CertificateSigningRequest) { c.Spec.Extra = nil }, want: issue.ReasonNotBound},
	"a token with two nodes asks": {change: func(c *certificates.CertificateSigningRequest) {
		c.Spec.Extra["authentication.kubernetes.io/node-name"] = []string{"alpha", "beta"}
	}, want: issue.ReasonNotBound},
	"a token of a node without a name asks": {change: func(c *certificates.CertificateSigningRequest) {
		c.Spec.Extra["authentication.kubernetes.io/node-name"] = []string{""}
	}, want: issue.ReasonNotBound},
	"a token of every node asks": {change: func(c *certificates.CertificateSigningRequest) {
		c.Spec.Extra["authentication.kubernetes.io/node-name"] = []string{"*"}
	}, want: issue.ReasonNotBound},
	"the agent of another node asks": {change: func(c *certificates.CertificateSigningRequest) {
		c.Spec.Extra["authentication.kubernetes.io/node-name"] = []string{"beta"}
	}, want: issue.ReasonOtherName},
	"no request": {change: func(c *certificates.CertificateSigningRequest) { c.Spec.Request = []byte("x") }, want: issue.ReasonBadRequest},
	"two requests": {change: func(c *certificates.CertificateSigningRequest) {
		c.Spec.Request = append(c.Spec.Request, c.Spec.Request...)
	}, want: issue.ReasonBadRequest},
	"a request whose author does not have the key": {change: func(c *certificates.CertificateSigningRequest) {
		block, _ := pem.Decode(c.Spec.Request)
		block.Bytes[len(block.Bytes)-1] ^= 1
		c.Spec.Request = pem.EncodeToMemory(block)
	}, want: issue.ReasonBadRequest},
	"another node's name":    {template: func(r *x509.CertificateRequest) { r.DNSNames = []string{cert.Name("beta")} }, want: issue.ReasonOtherName},
	"a second name":          {template: func(r *x509.CertificateRequest) { r.DNSNames = append(r.DNSNames, cert.Name("beta")) }, want: issue.ReasonOtherName},
	"the name of all nodes":  {template: func(r *x509.CertificateRequest) { r.DNSNames = []string{cert.Name("*")} }, want: issue.ReasonOtherName},
	"no name":                {template: func(r *x509.CertificateRequest) { r.DNSNames = nil }, want: issue.ReasonOtherName},
	"the name in capitals":   {template: func(r *x509.CertificateRequest) { r.DNSNames = []string{strings.ToUpper(cert.Name("alpha"))} }, want: issue.ReasonOtherName},
	"an address":             {template: func(r *x509.CertificateRequest) { r.IPAddresses = []net.IP{{10, 0, 0, 1}} }, want: issue.ReasonOtherName},
	"a URI":                  {template: func(r *x509.CertificateRequest) { r.URIs = []*url.URL{{Scheme: "spiffe", Host: "x"}} }, want: issue.ReasonOtherName},
	"a mail address":         {template: func(r *x509.CertificateRequest) { r.EmailAddresses = []string{"a@b"} }, want: issue.ReasonOtherName},
	"another subject":        {template: func(r *x509.CertificateRequest) { r.Subject.CommonName = "system:masters" }, want: issue.ReasonOtherName},
	"a group in the subject": {template: func(r *x509.CertificateRequest) { r.Subject.Organization = []string{"system:masters"} }, want: issue.ReasonOtherName},
	"the right to sign": {template: func(r *x509.CertificateRequest) {
		r.ExtraExtensions = []pkix.Extension{{Id: []int{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xFF}}}
	}, want: issue.ReasonOtherName},
	"another kind of key": {key: func(t *testing.T) crypto.Signer {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		check(t, err)
		return key
	}, want: issue.ReasonOtherKey},
	"a key on another curve": {key: func(t *testing.T) crypto.Signer {
		key, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
		check(t, err)
		return key
	}, want: issue.ReasonOtherKey},
	"a request that says it is a certificate": {change: func(c *certificates.CertificateSigningRequest) {
		block, _ := pem.Decode(c.Spec.Request)
		block.Type = "CERTIFICATE"
		c.Spec.Request = pem.EncodeToMemory(block)
	}, want: issue.ReasonBadRequest},
	"a request that is too long": {change: func(c *certificates.CertificateSigningRequest) {
		c.Spec.Request = append(c.Spec.Request, make([]byte, issue.MaxRequest)...)
	}, want: issue.ReasonBadRequest},
	"a request that cannot be read": {change: func(c *certificates.CertificateSigningRequest) {
		c.Spec.Request = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: []byte("x")})
	}, want: issue.ReasonBadRequest},
	"one usage more": {change: func(c *certificates.CertificateSigningRequest) {
		c.Spec.Usages = append([]certificates.KeyUsage{certificates.UsageCertSign}, c.Spec.Usages...)
	}, want: issue.ReasonOtherUsages},
	"one usage less": {change: func(c *certificates.CertificateSigningRequest) { c.Spec.Usages = c.Spec.Usages[1:] }, want: issue.ReasonOtherUsages},
	"one usage twice": {change: func(c *certificates.CertificateSigningRequest) {
		c.Spec.Usages = []certificates.KeyUsage{c.Spec.Usages[0], c.Spec.Usages[0], c.Spec.Usages[1]}
	}, want: issue.ReasonOtherUsages},
}

func TestARequestForAnythingElseIsRefused(t *testing.T) {
	for name, test := range refusals {
		t.Run(name, func(t *testing.T) {
			template := issue.Template("alpha")
			if test.template != nil {
				test.template(template)
			}
			var key crypto.Signer = newKey(t)
			if test.key != nil {
				key = test.key(t)
			}
			csr := request(t, key, template)
			if test.change != nil {
				test.change(csr)
			}
			d := issue.Decide(csr, users)
			if d.Verb != issue.Deny || d.Reason != test.want || d.Message == "" {
				t.Errorf("the decision is %s because of %s: %s; want %s because of %s", d.Verb, d.Reason, d.Message, issue.Deny, test.want)
			}
			condition(csr, certificates.CertificateApproved)
			if d := issue.Decide(csr, users); d.Verb != issue.Fail {
				t.Errorf("when another has approved it, the decision is %s", d.Verb)
			}
			if _, err := (issue.Authority{}).Sign(d, now, rand.Reader); err == nil {
				t.Error("it is signed")
			}
		})
	}
}

func newAuthority(t *testing.T, end time.Time) issue.Authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-48 * time.Hour), NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(t, err)
	leaf, err := x509.ParseCertificate(der)
	check(t, err)
	return issue.Authority{Certificate: leaf, Key: key}
}

type proofs struct {
	own   *tls.Certificate
	roots *x509.CertPool
}

func (p proofs) Current() *tls.Certificate      { return p.own }
func (p proofs) Roots() (*x509.CertPool, error) { return p.roots, nil }

func TestTwoNodesWithSignedCertificatesTrustEachOther(t *testing.T) {
	authority := newAuthority(t, now.Add(1000*time.Hour))
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate)
	node := func(clock time.Time) cert.Identity {
		key := newKey(t)
		csr := request(t, key, issue.Template("alpha"))
		condition(csr, certificates.CertificateApproved)
		text, err := authority.Sign(issue.Decide(csr, users), now, rand.Reader)
		check(t, err)
		block, _ := pem.Decode(text)
		leaf, err := x509.ParseCertificate(block.Bytes)
		check(t, err)
		if leaf.IsCA || leaf.NotAfter.Sub(now) != issue.Lifetime {
			t.Errorf("the certificate may sign: %t; it is valid until %s", leaf.IsCA, leaf.NotAfter)
		}
		return cert.Identity{Node: "alpha", Now: func() time.Time { return clock },
			Source: proofs{own: &tls.Certificate{Certificate: [][]byte{block.Bytes}, PrivateKey: key, Leaf: leaf}, roots: roots}}
	}
	for name, clock := range map[string]time.Time{"the same clock": now, "an hour late": now.Add(-time.Hour), "an hour early": now.Add(time.Hour)} {
		near, far := net.Pipe()
		server := tls.Server(near, node(now).Server())
		config, err := node(clock).Client("alpha")
		check(t, err)
		client := tls.Client(far, config)
		done := make(chan error, 1)
		go func() { done <- server.Handshake() }() //nolint:noctx // both ends are here
		if err := client.Handshake(); err != nil { //nolint:noctx // both ends are here
			t.Errorf("%s: the client says %v", name, err)
			_ = far.Close()
		}
		if err := <-done; err != nil {
			t.Errorf("%s: the server says %v", name, err)
		}
		if peer, err := cert.Peer(client.ConnectionState()); peer != "alpha" {
			t.Errorf("%s: the peer is %q, %v", name, peer, err)
		}
	}
}

func TestNoCertificateOutlivesItsAuthority(t *testing.T) {
	csr := request(t, newKey(t), issue.Template("alpha"))
	condition(csr, certificates.CertificateApproved)
	d := issue.Decide(csr, users)
	end := now.Add(time.Hour)
	text, err := newAuthority(t, end).Sign(d, now, rand.Reader)
	check(t, err)
	block, _ := pem.Decode(text)
	leaf, err := x509.ParseCertificate(block.Bytes)
	check(t, err)
	if !leaf.NotAfter.Equal(end) {
		t.Errorf("the certificate ends at %s, its authority at %s", leaf.NotAfter, end)
	}
	if _, err := newAuthority(t, now).Sign(d, now, rand.Reader); err == nil {
		t.Error("an authority that has expired signs")
	}
}

func TestWhatCannotBeSignedIsAnErrorAndNoCertificate(t *testing.T) {
	csr := request(t, newKey(t), issue.Template("alpha"))
	condition(csr, certificates.CertificateApproved)
	authority := newAuthority(t, now.Add(time.Hour))
	for name, test := range map[string]struct {
		authority issue.Authority
		random    io.Reader
	}{
		"no random serial number":         {authority, strings.NewReader("too short")},
		"the key is of another authority": {issue.Authority{Certificate: authority.Certificate, Key: newKey(t)}, rand.Reader},
	} {
		if text, err := test.authority.Sign(issue.Decide(csr, users), now, test.random); err == nil || text != nil {
			t.Errorf("%s: got %q, %v", name, text, err)
		}
	}
}
