package cert_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/internal/replicate/cert"
)

func TestANodesNameIsTheOneInItsCertificate(t *testing.T) {
	for _, node := range []string{"alpha", "alpha.example.org", "10.0.0.1", strings.Repeat("a", 253)} {
		if got, err := cert.Node(&x509.Certificate{DNSNames: []string{cert.Name(node)}}); got != node || err != nil {
			t.Errorf("the certificate of node %s is of %q, %v", node, got, err)
		}
	}
}

func TestACertificateOfAnythingElseIsOfNoNode(t *testing.T) {
	own := []string{cert.Name("alpha")}
	tests := map[string]*x509.Certificate{
		"no name":                 {},
		"two nodes":               {DNSNames: []string{own[0], cert.Name("beta")}},
		"an address beside it":    {DNSNames: own, IPAddresses: []net.IP{{10, 0, 0, 1}}},
		"a URI beside it":         {DNSNames: own, URIs: []*url.URL{{}}},
		"a mail address":          {DNSNames: own, EmailAddresses: []string{"a@b"}},
		"another domain":          {DNSNames: []string{"alpha.example.org"}},
		"the domain itself":       {DNSNames: []string{"node.berth.dev"}},
		"every node":              {DNSNames: []string{cert.Name("*")}},
		"capital letters":         {DNSNames: []string{cert.Name("Alpha")}},
		"a folder above":          {DNSNames: []string{cert.Name("../alpha")}},
		"a name that is too long": {DNSNames: []string{cert.Name(strings.Repeat("a", 254))}},
	}
	for name, leaf := range tests {
		if node, err := cert.Node(leaf); err == nil {
			t.Errorf("%s: the certificate is of node %q", name, node)
		}
	}
}

func TestAPeerIsNobodyBeforeItsCertificateWasJudged(t *testing.T) {
	leaf := &x509.Certificate{DNSNames: []string{cert.Name("alpha")}}
	for name, state := range map[string]tls.ConnectionState{
		"not judged":       {NegotiatedProtocol: "berth-stream", PeerCertificates: []*x509.Certificate{leaf}},
		"another protocol": {NegotiatedProtocol: "h2", VerifiedChains: [][]*x509.Certificate{{leaf}}},
	} {
		if node, err := cert.Peer(state); err == nil {
			t.Errorf("%s: the peer is node %q", name, node)
		}
	}
}

func TestControllersAskQuestionsAndHaveNoPartInAStream(t *testing.T) {
	leaf := &x509.Certificate{DNSNames: []string{cert.Name(cert.Controllers)}}
	state := tls.ConnectionState{NegotiatedProtocol: string(cert.Questions), VerifiedChains: [][]*x509.Certificate{{leaf}}}
	if peer, err := cert.PeerOf(state, cert.Questions); peer != cert.Controllers || err != nil {
		t.Errorf("a controller is %q, %v", peer, err)
	}
	state.NegotiatedProtocol = string(cert.Stream)
	if peer, err := cert.Peer(state); err == nil {
		t.Errorf("in a stream, a controller is %q", peer)
	}
	leaf.IPAddresses = []net.IP{{10, 0, 0, 1}}
	state.NegotiatedProtocol = string(cert.Questions)
	if peer, err := cert.PeerOf(state, cert.Questions); err == nil {
		t.Errorf("with an address beside its name, a controller is %q", peer)
	}
}

type lacking struct{}

func (lacking) Current() *tls.Certificate { return nil }
func (lacking) Roots() (*x509.CertPool, error) {
	return nil, errors.New("the authorities cannot be read")
}

func TestANodeThatKnowsNoAuthorityTrustsNobody(t *testing.T) {
	i := cert.Identity{Node: "alpha", Source: lacking{}, Now: time.Now}
	if _, err := i.Client("beta"); err == nil {
		t.Error("it calls another node")
	}
	if _, err := i.Server().GetConfigForClient(nil); err == nil {
		t.Error("it answers another node")
	}
}
