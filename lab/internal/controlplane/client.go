package controlplane

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"berth.dev/berth/lab/internal/network"
)

// Client asks the API server inside the namespace, as administrator. It is a
// plain HTTP client: the lab asks for little more than status codes.
type Client struct {
	server string
	http   *http.Client
}

// NewClient returns a client of the cluster's administrator.
func NewClient(c Config) (*Client, error) {
	pair, err := c.Authority.Issue("admin", Admin)
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, fmt.Errorf("loading the administrator's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.Authority.CertPEM())
	return &Client{server: c.Server(), http: &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
			DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
				return network.Dial(ctx, c.NetNS, address)
			},
		},
	}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Get returns the body of a path, or an error unless the answer is 200.
func (c *Client) Get(ctx context.Context, path string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+path, nil)
	if err != nil {
		return nil, err
	}
	return c.do(req, http.StatusOK)
}

// Apply makes the object at path what content says, whether it exists or not, and leaves alone
// what content does not mention.
func (c *Client) Apply(ctx context.Context, path string, content map[string]any) error {
	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	url := c.server + path + "?fieldManager=lab&force=true"
	req, err := http.NewRequestWithContext(ctx, http.MethodPatch, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/apply-patch+yaml") // of which JSON is a part
	_, err = c.do(req, http.StatusOK, http.StatusCreated)
	return err
}

func (c *Client) do(req *http.Request, wanted ...int) ([]byte, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(wanted, resp.StatusCode) {
		return nil, fmt.Errorf("asking for %s: %s", req.URL.Path, resp.Status)
	}
	return body, nil
}

// Wait asks for path until it answers 200. It gives up at once when check
// fails, and after [startLimit].
func (c *Client) Wait(ctx context.Context, path string, check func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("not ready after %v", startLimit))
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		_, last := c.Get(ctx, path)
		if last == nil {
			return nil
		}
		if err := check(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the API server: %w (last answer: %v)", context.Cause(ctx), last) //nolint:errorlint // there may be none
		case <-ticker.C:
		}
	}
}
