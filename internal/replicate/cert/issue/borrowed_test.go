package issue_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/cert/issue"
)

// lender is a process that keeps its certificate, and the identity of another one that borrows it.
type lender struct {
	*issue.Kept
	cert.Identity
}

func newLender(t *testing.T, node string, known func() (*x509.CertPool, error)) lender {
	t.Helper()
	dir := t.TempDir()
	kept, err := issue.NewKept(dir, "agent", node, known, logr.Discard())
	check(t, err)
	return lender{kept, cert.Identity{Node: node, Now: time.Now, Source: issue.Borrowed{Directory: dir, Name: "agent", Authorities: known}}}
}

// renew keeps a certificate that an authority signs now.
func (l lender) renew(t *testing.T, a issue.Authorities, at time.Time) {
	t.Helper()
	text, key := pair(t, a, l.Node, at)
	_, err := l.Update(text, key)
	check(t, err)
}

// meet connects two nodes. The error is what either says.
func meet(t *testing.T, server, client lender) (ends [2]*tls.Conn, err error) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	check(t, err)
	defer l.Close()
	far, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	check(t, err)
	near, err := l.Accept()
	check(t, err)
	config, err := client.Client(server.Node)
	check(t, err)
	ends = [2]*tls.Conn{tls.Server(near, server.Server()), tls.Client(far, config)}
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	said := make(chan error, 1)
	go func() {
		err := ends[0].HandshakeContext(t.Context())
		if err != nil {
			_ = near.Close()
		}
		said <- err
	}()
	err = ends[1].HandshakeContext(t.Context())
	if err != nil {
		_ = far.Close()
	}
	return ends, errors.Join(err, <-said)
}

func TestABorrowedCertificateIsRenewedWithItsOwnersAndBreaksNoConnection(t *testing.T) {
	today := time.Now() // crypto/x509 judges by the clock
	old := after(t, nil, today)
	trusted := old.Pool()
	known := func() (*x509.CertPool, error) { return trusted, nil }
	alpha, beta := newLender(t, "alpha", known), newLender(t, "beta", known)
	alpha.renew(t, old, today)
	beta.renew(t, old, today)
	first, err := meet(t, alpha, beta)
	check(t, err)

	next := after(t, nil, today) // an authority that the nodes did not know before
	trusted = next.Pool()
	alpha.renew(t, next, today)
	beta.renew(t, next, today)
	second, err := meet(t, alpha, beta)
	check(t, err)
	shown := func(c *tls.Conn) string { return c.ConnectionState().PeerCertificates[0].SerialNumber.String() }
	if shown(first[1]) == shown(second[1]) || shown(first[0]) == shown(second[0]) {
		t.Error("a node shows its old certificate")
	}
	go func() { _, _ = first[0].Write([]byte("goes on")) }()
	b := make([]byte, 7)
	if _, err := io.ReadFull(first[1], b); err != nil || string(b) != "goes on" {
		t.Errorf("the connection of before brought %q, %v", b, err)
	}
}

func TestABorrowedCertificateThatDoesNotServeIsNamedForItsReason(t *testing.T) {
	today := time.Now()
	ours := after(t, nil, today)
	known := func() (*x509.CertPool, error) { return ours.Pool(), nil }
	for says, prepare := range map[string]func(beta lender){
		"no certificate yet": func(lender) {},
		"its clock says": func(beta lender) {
			beta.renew(t, after(t, nil, today.Add(-30*24*time.Hour)), today.Add(-30*24*time.Hour))
		},
		"unknown authority": func(beta lender) { beta.renew(t, after(t, nil, today), today) },
		"is of node gamma": func(beta lender) {
			beta.Node = "gamma"
			beta.renew(t, ours, today)
		},
	} {
		alpha, beta := newLender(t, "alpha", known), newLender(t, "beta", known)
		alpha.renew(t, ours, today)
		prepare(beta)
		if _, err := meet(t, alpha, beta); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("want %q: %v", says, err)
		}
	}
}
