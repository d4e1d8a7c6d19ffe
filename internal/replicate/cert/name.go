package cert

import (
	"crypto/x509"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// suffix stands behind the node's name in its certificate.
const suffix = ".node.berth.dev"

// Controllers is the identity that all controllers share. No node has such a name.
const Controllers = "*controllers"

// controllerName is the DNS name of a controller's certificate.
const controllerName = "controller.berth.dev"

// Name returns the DNS name of the certificate of a node or of Controllers.
func Name(node string) string {
	if node == Controllers {
		return controllerName
	}
	return node + suffix
}

// Domains are those below which all certificates of nodes and controllers are.
func Domains() []string { return []string{suffix[1:], controllerName} }

func ofController(leaf *x509.Certificate) bool {
	return len(leaf.DNSNames) == 1 && leaf.DNSNames[0] == controllerName &&
		len(leaf.IPAddresses)+len(leaf.URIs)+len(leaf.EmailAddresses) == 0
}

// Node returns the name of the node whose certificate it is. A certificate with any other name beside it
// is no node's.
func Node(leaf *x509.Certificate) (string, error) {
	if len(leaf.DNSNames) != 1 || len(leaf.IPAddresses) > 0 || len(leaf.URIs) > 0 || len(leaf.EmailAddresses) > 0 {
		return "", fmt.Errorf("the certificate has %d names, and a node's has one", len(leaf.DNSNames)+len(leaf.IPAddresses)+len(leaf.URIs)+len(leaf.EmailAddresses))
	}
	return NodeOf(leaf.DNSNames[0])
}

// NodeOf returns the name of the node that a DNS name of a certificate is for.
func NodeOf(name string) (string, error) {
	node, ok := strings.CutSuffix(name, suffix)
	if !ok || len(validation.IsDNS1123Subdomain(node)) > 0 {
		return "", fmt.Errorf("%q is no node's name below %s", name, suffix[1:])
	}
	return node, nil
}
