package issue

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/certificate"
	"k8s.io/utils/clock"

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

// Own is the certificate of one process: a cert.Source.
type Own struct {
	node   string
	client kubernetes.Interface
	store  certificate.Store
	roots  func() (*x509.CertPool, error)

	mu      sync.Mutex
	manager certificate.Manager
}

var _ cert.Source = (*Own)(nil)

// look is how often a process looks whether its certificate is trusted.
const look = time.Minute

// NewOwn returns the certificate of a process of a node, or of a controller. It is renewed while Run runs.
func NewOwn(ctx context.Context, node string, client kubernetes.Interface, store certificate.Store, roots func() (*x509.CertPool, error)) (o *Own, err error) {
	o = &Own{node: node, client: client, store: store, roots: roots}
	o.manager, err = NewManager(context.WithoutCancel(ctx), node, client, store)
	return o, err
}

// Current implements cert.Source.
func (o *Own) Current() *tls.Certificate {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.manager.Current()
}

// Roots implements cert.Source.
func (o *Own) Roots() (*x509.CertPool, error) { return o.roots() }

// Run keeps the certificate valid until ctx ends. The manager asks for the next one in time; if the authority
// that signed the current one is trusted no longer, since people began anew, another manager asks at once.
func (o *Own) Run(ctx context.Context, c clock.WithTicker) {
	o.manager.Start()
	defer func() { o.manager.Stop() }()
	ticker := c.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if own := o.Current(); own == nil || trusted(own.Leaf, o.roots) == nil {
			continue
		}
		next, err := NewManager(context.WithoutCancel(ctx), o.node, o.client, o.store)
		if err != nil {
			continue // the next look tries again
		}
		o.mu.Lock()
		o.manager.Stop()
		o.manager = next
		o.mu.Unlock()
		next.Start()
	}
}

// trusted returns why no authority that is trusted now has signed a certificate. That the authorities are not
// known yet says nothing. No clock counts: the certificate's end is never after its authority's.
func trusted(leaf *x509.Certificate, known func() (*x509.CertPool, error)) error {
	roots, err := known()
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: leaf.NotAfter, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

// ReadRoots reads the authorities that the controllers have published, from a file that the kubelet keeps as
// new as the ConfigMap.
func ReadRoots(path string) (*x509.CertPool, error) {
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return nil, fmt.Errorf("the controllers have not published their authority yet, or the kubelet has not brought it: %w", err)
	}
	if err != nil {
		return nil, err
	}
	roots, err := ParseRoots(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	pool := x509.NewCertPool()
	for _, root := range roots {
		pool.AddCert(root)
	}
	return pool, nil
}

// Memory is a store that ends with the process.
type Memory struct{}

var _ certificate.Store = Memory{}

// Current implements certificate.Store. The manager itself keeps what it has.
func (Memory) Current() (*tls.Certificate, error) { return nil, none("this process has just begun") }

// Update implements certificate.Store.
func (Memory) Update(certificate, key []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	return &pair, err
}

// Kept is a store in a directory that outlives the process. What it has is used only if it serves: a pair that
// is damaged, of another node, or signed by an authority that is trusted no longer costs a new request, and
// never the process.
type Kept struct {
	certificate.Store
	node  string
	roots func() (*x509.CertPool, error)
	log   logr.Logger
}

// NewKept returns the store of one process of a node. Two processes may share the directory by two names.
func NewKept(dir, name, node string, roots func() (*x509.CertPool, error), log logr.Logger) (*Kept, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of this node's certificate: %w", err)
	}
	files, err := certificate.NewFileStoreWithLogger(log.V(1), name, dir, dir, "", "")
	if err != nil {
		return nil, fmt.Errorf("opening the directory of this node's certificate (it may be emptied): %w", err)
	}
	return &Kept{Store: files, node: node, roots: roots, log: log}, nil
}

// Current implements certificate.Store.
func (k *Kept) Current() (*tls.Certificate, error) {
	pair, err := k.Store.Current()
	if err == nil {
		err = k.serves(pair)
	}
	if err != nil {
		k.log.Info("this node asks for a certificate", "why", err.Error())
		return nil, none(err.Error())
	}
	return pair, nil
}

func (k *Kept) serves(pair *tls.Certificate) error {
	switch node, err := cert.Node(pair.Leaf); {
	case err != nil:
		return err
	case node != k.node:
		return fmt.Errorf("the certificate is of node %s", node)
	}
	return trusted(pair.Leaf, k.roots)
}

func none(why string) error {
	err := certificate.NoCertKeyError(why)
	return &err
}
