package controller_test

import (
	"net/http"
	"strings"
	"testing"

	"berth.dev/berth/internal/controller/controllertest"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/health/healthtest"
)

func TestHealthAndMetricsAreServed(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment)
	mustCreate(t, p, c.request(n))
	for _, served := range []struct{ path, part string }{
		{"/healthz", "ok"},
		{"/readyz", "ok"},
		{"/metrics", "controller_runtime_reconcile_total"},
		{"/metrics", "berth_controller_leading 1"},
		{"/metrics", `berth_node_state{node="` + n.Name + `",`},
		{"/metrics", "berth_volume_capacity_bytes{"},
	} {
		if status, body := healthtest.Get(t, p.HTTP+served.path); status != http.StatusOK || !strings.Contains(body, served.part) {
			t.Errorf("%s: %d without %q: %.200s", served.path, status, served.part, body)
		}
	}
}

func TestTheControllersOfSharedDisksShowTheirVolumesAndCountNoNodes(t *testing.T) {
	c := newCluster(t)
	n := c.node(t, "n", 10*gi)
	p := controllertest.Start(t, c.Environment, controllertest.WithDriver(driver.Disk()))
	status, body := healthtest.Get(t, p.HTTP+"/metrics")
	if status != http.StatusOK || !strings.Contains(body, "berth_controller_leading 1") || strings.Contains(body, `berth_node_state{node="`+n.Name) {
		t.Errorf("%d: %.200s", status, body)
	}
}
