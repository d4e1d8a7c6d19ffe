package controller

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
)

// tls returns the configuration that secures connections, and the watch that must run
// for it. Certificates are rotated while the process runs, and so is the clients'
// authority. So nothing is kept that the files no longer contain.
func (e *Extender) tls() (config *tls.Config, watch func(context.Context) error, err error) {
	watcher, err := certwatcher.New(e.CertFile, e.KeyFile)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the extender's certificate: %w", err)
	}
	config = &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: watcher.GetCertificate, VerifyConnection: e.known}
	if _, err := readAuthorities(e.ClientCAFile); err != nil {
		return nil, nil, err
	}
	config.ClientAuth = tls.RequireAndVerifyClientCert
	config.SessionTicketsDisabled = true // a ticket would admit a client of a replaced authority
	strict := config.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		now := strict.Clone()
		var err error
		now.ClientCAs, err = readAuthorities(e.ClientCAFile)
		return now, err
	}
	return config, watcher.Start, nil
}

// known refuses a client whose certificate is not the scheduler's.
func (e *Extender) known(state tls.ConnectionState) error {
	want := cmp.Or(e.ClientName, SchedulerName)
	if len(state.PeerCertificates) == 0 {
		return errors.New("the client has no certificate")
	}
	if name := state.PeerCertificates[0].Subject.CommonName; name != want {
		return fmt.Errorf("the client is %q: the extender answers %q alone", name, want)
	}
	return nil
}

func readAuthorities(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading who signs the scheduler's certificate: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("reading who signs the scheduler's certificate: %s has no certificate in it", path)
	}
	return pool, nil
}
