package cert

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// Protocol is what two ends speak. It keeps a connection that was meant for another server from being
// understood.
type Protocol string

const (
	// Stream is that of replication, between two nodes.
	Stream Protocol = "berth-stream"
	// Questions are those of package peer. Controllers ask, too.
	Questions Protocol = "berth-questions"
)

// Source is where a node's certificate and the authorities come from. Each method is called at each
// handshake and may return another answer each time. Methods may be called at the same time.
type Source interface {
	// Current returns the node's certificate, nil if it has none that is valid.
	Current() *tls.Certificate
	// Roots returns the authorities that sign nodes' certificates.
	Roots() (*x509.CertPool, error)
}

// Identity is a node and its proofs.
type Identity struct {
	// Node is its name, or Controllers.
	Node string
	// Protocol that it speaks; the empty one is Stream.
	Protocol Protocol
	Source   Source
	// Now is the time by which certificates are judged.
	Now func() time.Time
}

// Server returns the configuration of the end that listens. It speaks only with nodes.
func (i Identity) Server() *tls.Config {
	base := i.base()
	base.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return i.certificate() }
	base.ClientAuth = tls.RequireAndVerifyClientCert
	config := base.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		roots, err := i.Source.Roots()
		if err != nil {
			return nil, fmt.Errorf("reading the authorities of nodes: %w", err)
		}
		c := base.Clone()
		c.ClientCAs = roots
		return c, nil
	}
	return config
}

// Client returns the configuration for one connection to the node peer.
func (i Identity) Client(peer string) (*tls.Config, error) {
	roots, err := i.Source.Roots()
	if err != nil {
		return nil, fmt.Errorf("reading the authorities of nodes: %w", err)
	}
	config := i.base()
	config.ServerName = Name(peer)
	config.RootCAs = roots
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return i.certificate() }
	return config, nil
}

// base has what both ends share. Without session tickets each connection shows its certificate anew.
func (i Identity) base() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{string(i.protocol())},
		SessionTicketsDisabled: true,
		Time:                   i.Now,
		VerifyConnection: func(state tls.ConnectionState) error {
			_, err := PeerOf(state, i.protocol())
			return err
		},
	}
}

func (i Identity) protocol() Protocol {
	if i.Protocol == "" {
		return Stream
	}
	return i.Protocol
}

// certificate refuses to show a certificate that no peer would believe, so that the message names the
// cause on the node that has it.
func (i Identity) certificate() (*tls.Certificate, error) {
	c := i.Source.Current()
	if c == nil || c.Leaf == nil {
		return nil, errors.New("this node has no certificate yet, or it has expired; a CertificateSigningRequest asks for one")
	}
	node, err := who(c.Leaf, i.protocol())
	switch now := i.Now(); {
	case err != nil:
		return nil, fmt.Errorf("this node's certificate: %w", err)
	case node != i.Node:
		return nil, fmt.Errorf("this node is %s, and its certificate is of node %s", i.Node, node)
	case now.Before(c.Leaf.NotBefore) || now.After(c.Leaf.NotAfter):
		return nil, fmt.Errorf("this node's certificate is valid from %s to %s, and its clock says %s",
			c.Leaf.NotBefore.Format(time.RFC3339), c.Leaf.NotAfter.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	return c, nil
}

// Peer returns the node at the other end of a stream's connection whose handshake is complete.
func Peer(state tls.ConnectionState) (string, error) { return PeerOf(state, Stream) }

// PeerOf returns who is at the other end of a connection whose handshake is complete: a node, or
// Controllers if the protocol lets them ask.
func PeerOf(state tls.ConnectionState, p Protocol) (string, error) {
	switch {
	case state.NegotiatedProtocol != string(p):
		return "", fmt.Errorf("the peer does not speak %s", p)
	case len(state.VerifiedChains) == 0:
		return "", errors.New("the peer showed no certificate that a known authority has signed")
	}
	return who(state.VerifiedChains[0][0], p)
}

func who(leaf *x509.Certificate, p Protocol) (string, error) {
	if p == Questions && ofController(leaf) {
		return Controllers, nil
	}
	return Node(leaf)
}
