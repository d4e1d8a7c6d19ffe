package agent

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
)

var errAway = errors.New("the API server is away")

// traffic counts the traffic between an agent and the API server, and can cut it.
type traffic struct {
	mu       sync.Mutex
	received int64
	requests []string // method and path
	away     bool
	bodies   map[io.Closer]struct{}
}

func (t *traffic) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if err := t.begin(r); err != nil {
			return nil, err
		}
		response, err := next.RoundTrip(r)
		if err == nil {
			response.Body = t.body(response.Body)
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (t *traffic) begin(r *http.Request) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.away {
		return errAway
	}
	kind := r.Method
	if r.URL.Query().Get("watch") == "true" || r.URL.Query().Get("watch") == "1" {
		kind = "WATCH"
	}
	t.requests = append(t.requests, kind+" "+r.URL.Path)
	return nil
}

func (t *traffic) body(b io.ReadCloser) io.ReadCloser {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bodies == nil {
		t.bodies = map[io.Closer]struct{}{}
	}
	t.bodies[b] = struct{}{}
	return &counted{ReadCloser: b, traffic: t}
}

// counted is a response's body.
type counted struct {
	io.ReadCloser
	traffic *traffic
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.traffic.mu.Lock()
	defer c.traffic.mu.Unlock()
	c.traffic.received += int64(n)
	return n, err
}

func (c *counted) Close() error {
	c.traffic.mu.Lock()
	delete(c.traffic.bodies, c.ReadCloser)
	c.traffic.mu.Unlock()
	return c.ReadCloser.Close()
}

// cut breaks all connections and lets no request through until mend.
func (t *traffic) cut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.away = true
	for b := range t.bodies {
		_ = b.Close() // a watch ends in the middle, as when a cable is pulled
	}
	clear(t.bodies)
}

func (t *traffic) mend() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.away = false
}

// count counts the requests of a method whose path has that suffix.
func (t *traffic) count(method, suffix string) (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.requests {
		if strings.HasPrefix(r, method+" ") && strings.HasSuffix(r, suffix) {
			n++
		}
	}
	return n
}

// take returns the bytes received since the last call.
func (t *traffic) take() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.received
	t.received = 0
	return n
}

// isCut says whether the API server is out of reach.
func (t *traffic) isCut() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.away
}
