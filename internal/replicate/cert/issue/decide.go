package issue

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificates "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"berth.dev/berth/internal/decide"
	"berth.dev/berth/internal/replicate/cert"
)

// Signer is the name by which requests ask for a node's certificate.
const Signer = "berth.dev/replication"

// nodeKey is where the API server writes the node that a token is bound to.
const nodeKey = "authentication.kubernetes.io/node-name"

// Usages are those of a node's certificate: nodes call and are called.
var Usages = []certificates.KeyUsage{certificates.UsageDigitalSignature, certificates.UsageClientAuth, certificates.UsageServerAuth}

// MaxRequest is how long a request may be, in bytes of PEM. That of the longest name of a node has half as many.
const MaxRequest = 3 << 10

// The verbs of these decisions: what the controller does with a request.
const (
	// Ignore: the request is of another signer, or finished.
	Ignore decide.Verb = "Ignore"
	// Approve: add the condition Approved.
	Approve decide.Verb = "Approve"
	// Deny: add the condition Denied.
	Deny decide.Verb = "Deny"
	// Fail: add the condition Failed. Another approved what must not be signed.
	Fail decide.Verb = "Fail"
	// Sign: write the certificate into the status.
	Sign decide.Verb = "Sign"
)

// The reasons of decisions.
const (
	ReasonOtherSigner = "OtherSigner"
	ReasonFinished    = "Finished"
	ReasonOwnName     = "OwnName"
	ReasonNotAgent    = "NotAgent"
	ReasonNotBound    = "NotBound"
	ReasonBadRequest  = "BadRequest"
	ReasonOtherName   = "OtherName"
	ReasonOtherKey    = "OtherKey"
	ReasonOtherUsages = "OtherUsages"
)

// Answer is what to do with a request, and why.
type Answer struct {
	decide.Decision
	// Node and Request are what to sign. They are set if the verb is Approve or Sign.
	Node    string
	Request *x509.CertificateRequest
}

func because(reason, format string, args ...any) Answer {
	return Answer{Decision: decide.Decision{Reason: reason, Message: fmt.Sprintf(format, args...)}}
}

func ignore(reason, message string) Answer {
	return Answer{Decision: decide.Decision{Verb: Ignore, Reason: reason, Message: message}}
}

// Users are the user names of service accounts.
type Users struct {
	// OnNodes are those of the agents and of the guards: each may ask for the name of the node on which
	// its pod runs.
	OnNodes []string
	// Controller may ask for the name of all controllers. Empty is no user.
	Controller string
}

// Decide decides on a request.
func Decide(csr *certificates.CertificateSigningRequest, users Users) Answer {
	approved := false
	for _, c := range csr.Status.Conditions {
		if c.Type != certificates.CertificateApproved {
			return ignore(ReasonFinished, fmt.Sprintf("the request is %s", c.Type))
		}
		approved = true
	}
	switch {
	case csr.Spec.SignerName != Signer:
		return ignore(ReasonOtherSigner, fmt.Sprintf("the request is for signer %s", csr.Spec.SignerName))
	case len(csr.Status.Certificate) > 0:
		return ignore(ReasonFinished, "the request has its certificate")
	}
	d := judge(csr, users)
	switch {
	case d.Reason == ReasonOwnName && approved:
		d.Verb = Sign
	case d.Reason == ReasonOwnName:
		d.Verb = Approve
	case approved:
		d.Verb = Fail
	default:
		d.Verb = Deny
	}
	return d
}

// judge decides whether the request is for the own name of the user who asks.
func judge(csr *certificates.CertificateSigningRequest, users Users) Answer {
	node, refusal := asks(csr, users)
	if refusal.Reason != "" {
		return refusal
	}
	r, err := parse(csr.Spec.Request)
	if err != nil {
		return because(ReasonBadRequest, "%v", err)
	}
	if problem := otherName(r, node); problem != "" {
		return because(ReasonOtherName, "%s may have a certificate of the name %s only: %s", csr.Spec.Username, cert.Name(node), problem)
	}
	if key, ok := r.PublicKey.(*ecdsa.PublicKey); !ok || key.Curve != elliptic.P256() {
		return because(ReasonOtherKey, "the key is not of ECDSA on P-256")
	}
	if !sameUsages(csr.Spec.Usages) {
		return because(ReasonOtherUsages, "the usages are %v, and a node's are %v", csr.Spec.Usages, Usages)
	}
	d := because(ReasonOwnName, "%s asks for its own name %s", csr.Spec.Username, cert.Name(node))
	d.Node, d.Request = node, r
	return d
}

// Asker is whose budget of requests a request takes from: the node that the API server has written into it,
// Controllers, or empty for all others together.
func Asker(csr *certificates.CertificateSigningRequest, users Users) string {
	name, refusal := asks(csr, users)
	if refusal.Reason != "" {
		return ""
	}
	return name
}

// asks returns for whose name the user may ask: a node's or the controllers'.
func asks(csr *certificates.CertificateSigningRequest, users Users) (name string, refusal Answer) {
	user := csr.Spec.Username
	switch {
	case user != "" && user == users.Controller:
		return cert.Controllers, Answer{}
	case !slices.Contains(users.OnNodes, user):
		return "", because(ReasonNotAgent, "only agents, guards and controllers may ask, and %s does", user)
	}
	nodes := csr.Spec.Extra[nodeKey]
	if len(nodes) != 1 {
		return "", because(ReasonNotBound, "the token is not bound to a pod on a node")
	}
	if len(validation.IsDNS1123Subdomain(nodes[0])) > 0 {
		return "", because(ReasonNotBound, "%q is no name of a node", nodes[0])
	}
	return nodes[0], Answer{}
}

// parse reads the one request in the PEM text, and checks that its author has the key.
func parse(text []byte) (*x509.CertificateRequest, error) {
	if len(text) > MaxRequest {
		return nil, fmt.Errorf("it is longer than %d bytes", MaxRequest)
	}
	block, rest := pem.Decode(text)
	switch {
	case block == nil || block.Type != "CERTIFICATE REQUEST":
		return nil, errors.New("it holds no request in PEM")
	case len(rest) > 0:
		return nil, errors.New("it holds more than one request")
	}
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	if err := r.CheckSignature(); err != nil {
		return nil, fmt.Errorf("checking that the request's author has the key: %w", err)
	}
	return r, nil
}

// alternativeNames is the only extension that a request has.
var alternativeNames = asn1.ObjectIdentifier{2, 5, 29, 17}

// otherName says what the request asks for beside the node's name, "" if nothing.
func otherName(r *x509.CertificateRequest, node string) string {
	switch name := cert.Name(node); {
	case len(r.Subject.Names) != 1 || r.Subject.CommonName != name:
		return fmt.Sprintf("its subject is %s", r.Subject)
	case len(r.IPAddresses)+len(r.URIs)+len(r.EmailAddresses) > 0:
		return "it has names that are no DNS names"
	case !slices.Equal(r.DNSNames, []string{name}):
		return fmt.Sprintf("its DNS names are %q", r.DNSNames)
	}
	for _, e := range r.Extensions {
		if !e.Id.Equal(alternativeNames) {
			return fmt.Sprintf("it asks for extension %s", e.Id)
		}
	}
	return ""
}

func sameUsages(usages []certificates.KeyUsage) bool {
	for _, u := range Usages {
		if !slices.Contains(usages, u) {
			return false
		}
	}
	return len(usages) == len(Usages)
}
