package issue

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"

	"berth.dev/berth/internal/replicate/cert"
)

// Template is what the agent of a node asks for.
func Template(node string) *x509.CertificateRequest {
	return &x509.CertificateRequest{Subject: pkix.Name{CommonName: cert.Name(node)}, DNSNames: []string{cert.Name(node)}}
}

// NewManager returns what keeps a node's certificate valid, once started: it asks for one by the agent's
// own client, and for the next one in time. The store keeps certificate and key over a restart. Current of
// the manager is Current of a cert.Source.
func NewManager(ctx context.Context, node string, client kubernetes.Interface, store certificate.Store) (certificate.Manager, error) {
	lifetime := Lifetime
	return certificate.NewManager(&certificate.Config{
		ClientsetFn:                  func(*tls.Certificate) (kubernetes.Interface, error) { return client, nil },
		Template:                     Template(node),
		SignerName:                   Signer,
		RequestedCertificateLifetime: &lifetime,
		Usages:                       Usages,
		CertificateStore:             store,
		Name:                         "replication",
		Ctx:                          &ctx,
	})
}
