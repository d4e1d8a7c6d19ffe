package controller_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"berth.dev/berth/internal/controller/controllertest"
)

func TestHealthAndMetricsAreServed(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	mustCreate(t, p, c.request(n))
	for path, part := range map[string]string{
		"/healthz": "ok",
		"/readyz":  "ok",
		"/metrics": "controller_runtime_reconcile_total",
	} {
		if body := get(t, p.HTTP+path); !strings.Contains(body, part) {
			t.Errorf("%s lacks %q: %.200s", path, part, body)
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, response.Status, err)
	}
	return string(body)
}
