package peer

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/replicate/cert"
)

const (
	pathAlive   = "/v1/alive"
	pathCopy    = "/v1/copy"
	pathContact = "/v1/contact"
	pathProbe   = "/v1/probe"
	pathBeats   = "/v1/beats"

	// askWithin is how long one node has to answer. A question about a third node takes that node's time, too.
	askWithin   = time.Second
	probeWithin = 2 * askWithin
	maxAnswer   = 1 << 20
	// maxAtOnce is how many nodes are asked at once.
	maxAtOnce = 256
)

type (
	contact struct {
		SinceRenewal time.Duration `json:"sinceRenewal"`
	}
	probe struct {
		Alive bool `json:"alive"`
	}
)

// Client asks nodes.
type Client struct {
	identity cert.Identity
	address  func(ctx context.Context, node string) (string, error)
	log      logr.Logger
	http     *http.Client
	atOnce   chan struct{}
	connect  func(ctx context.Context, network, address string) (net.Conn, error)
}

// NewClient returns what asks with an identity. address returns the host and the port at which a node may
// be asked. A wrong address costs an answer and nothing else: the certificate proves which node it is.
func NewClient(identity cert.Identity, address func(ctx context.Context, node string) (string, error), log logr.Logger) *Client {
	identity.Protocol = cert.Questions
	c := &Client{
		identity: identity, address: address, log: log, atOnce: make(chan struct{}, maxAtOnce),
		connect: (&net.Dialer{}).DialContext,
	}
	c.http = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialTLSContext: c.dial, MaxConnsPerHost: 4, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
			MaxResponseHeaderBytes: maxHead, ResponseHeaderTimeout: answerWithin, DisableCompression: true,
		},
	}
	return c
}

// Close lets go of connections that nothing uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// dial connects to the node whose name the request has as its host.
func (c *Client) dial(ctx context.Context, network, at string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeWithin) // net/http dials on when the question is over
	defer cancel()
	host, _, _ := net.SplitHostPort(at) // net/http adds the port
	node, err := cert.NodeOf(host)
	if err != nil {
		return nil, err
	}
	address, err := c.address(ctx, node)
	if err != nil {
		return nil, fmt.Errorf("finding the address of node %s: %w", node, err)
	}
	config, err := c.identity.Client(node)
	if err != nil {
		return nil, err
	}
	raw, err := c.connect(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return conn, nil
}

// Ask asks nodes for their copies of a volume, side by side, and returns the answers of those that answer in
// time.
func (c *Client) Ask(ctx context.Context, volume string, nodes []string) []ownership.Peer {
	return each(ctx, c, askWithin, nodes, func(ctx context.Context, node string) (p ownership.Peer, err error) {
		err = c.get(ctx, node, pathCopy, url.Values{"volume": {volume}}, &p)
		p.Node = node // as its certificate says
		return p, err
	})
}

// Contacts asks the guards of nodes for how long they have had no answer to a renewal.
func (c *Client) Contacts(ctx context.Context, nodes []string) []ownership.PeerContact {
	return each(ctx, c, askWithin, nodes, func(ctx context.Context, node string) (ownership.PeerContact, error) {
		var a contact
		err := c.get(ctx, node, pathContact, nil, &a)
		return ownership.PeerContact{Node: node, SinceRenewal: a.SinceRenewal}, err
	})
}

// Alive tells whether a node answers now.
func (c *Client) Alive(ctx context.Context, node string) bool {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	return c.get(ctx, node, pathAlive, nil, &struct{}{}) == nil
}

// each asks all nodes side by side, each once.
func each[T any](ctx context.Context, c *Client, within time.Duration, nodes []string, ask func(ctx context.Context, node string) (T, error)) (out []T) {
	var mu sync.Mutex
	var all sync.WaitGroup
	asked := map[string]bool{}
	for _, node := range nodes {
		if asked[node] {
			continue
		}
		asked[node] = true
		all.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, within)
			defer cancel()
			select {
			case c.atOnce <- struct{}{}:
				defer func() { <-c.atOnce }()
			case <-ctx.Done():
				return
			}
			answer, err := ask(ctx, node)
			if err != nil {
				c.log.V(1).Info("a node does not answer", "node", node, "why", err.Error())
				return
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, answer)
		})
	}
	all.Wait()
	return out
}

// get asks one question.
func (c *Client) get(ctx context.Context, node, path string, q url.Values, answer any) error {
	r, err := c.send(ctx, node, path, q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(io.LimitReader(r.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("reading the answer of node %s: %w", node, err)
	case len(text) > maxAnswer:
		return fmt.Errorf("the answer of node %s is longer than %d bytes", node, maxAnswer)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("reading the answer of node %s: %w", node, err)
	}
	return nil
}

func (c *Client) send(ctx context.Context, node, path string, q url.Values) (*http.Response, error) {
	u := url.URL{Scheme: "https", Host: cert.Name(node), Path: path, RawQuery: q.Encode()}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	a, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("asking node %s: %w", node, err)
	}
	if a.StatusCode != http.StatusOK {
		why, _ := io.ReadAll(io.LimitReader(a.Body, 256))
		_ = a.Body.Close()
		return nil, fmt.Errorf("node %s answers %d: %q", node, a.StatusCode, why)
	}
	return a, nil
}

// beats calls heard for each beat of a node, until the stream breaks.
func (c *Client) beats(ctx context.Context, node string, heard func()) error {
	r, err := c.send(ctx, node, pathBeats, nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	lines := bufio.NewReaderSize(r.Body, 64)
	for {
		if _, err := lines.ReadSlice('\n'); err != nil {
			return fmt.Errorf("following the beats of node %s: %w", node, err)
		}
		heard()
	}
}
