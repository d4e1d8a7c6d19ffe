package extender

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
)

// turns is a Service: every new connection leads to the next of its endpoints.
func turns(t *testing.T, handlers ...http.Handler) *http.Client {
	t.Helper()
	var endpoints []string
	for _, handler := range handlers {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		endpoints = append(endpoints, server.Listener.Addr().String())
	}
	dialled := 0
	transport := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		to := endpoints[dialled%len(endpoints)]
		dialled++
		return (&net.Dialer{}).DialContext(ctx, network, to)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func TestASchedulerThatReachesAFollowerFindsTheLeaderNext(t *testing.T) {
	follower := Handler(nil, func() error { return http.ErrServerClosed }, logr.Discard())
	leader := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	client := turns(t, follower, leader)
	var seen []int
	for range 4 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://berth-extender/filter", strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, response.Body) // after that the connection can be used again
		_ = response.Body.Close()
		seen = append(seen, response.StatusCode)
	}
	if want := []int{503, 200, 200, 200}; !slices.Equal(seen, want) {
		t.Errorf("answers are %v, want %v", seen, want)
	}
}
