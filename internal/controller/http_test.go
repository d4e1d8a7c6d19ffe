package controller_test

import (
	"net/http"
	"strings"
	"testing"

	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/health/healthtest"
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
		if status, body := healthtest.Get(t, p.HTTP+path); status != http.StatusOK || !strings.Contains(body, part) {
			t.Errorf("%s: %d without %q: %.200s", path, status, part, body)
		}
	}
}
