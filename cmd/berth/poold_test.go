package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"berth.dev/berth/internal/agent/metrics"
	"berth.dev/berth/internal/health/healthtest"
	"berth.dev/berth/internal/run"
)

func TestAPooldOfItsOwnShowsItsCommandsAndWhetherItsPoolsCanBeManaged(t *testing.T) {
	registry := prometheus.NewRegistry()
	runner := run.Exec{Observer: metrics.NewCommands(registry)}
	if _, err := runner.Query(t.Context(), run.Command{Operation: "true", Program: "true"}); err != nil {
		t.Fatal(err)
	}
	l, err := listenHTTP(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() {
		served <- serveMetrics(ctx, l, registry, func() error { return errors.New("vg0: a disk is missing") })
	}()
	url := "http://" + l.Addr().String()
	for path, want := range map[string]struct {
		status int
		part   string
	}{
		"/healthz": {http.StatusOK, "ok"},
		"/readyz":  {http.StatusInternalServerError, "pools"},
		"/metrics": {http.StatusOK, `berth_poold_command_seconds_count{operation="true",outcome="ok"} 1`},
	} {
		if status, body := healthtest.Get(t, url+path); status != want.status || !strings.Contains(body, want.part) {
			t.Errorf("%s: %d without %q: %.300s", path, status, want.part, body)
		}
	}
	if _, body := healthtest.Get(t, url+"/metrics"); !strings.Contains(body, "process_cpu_seconds_total") {
		t.Error("what the process uses is not shown")
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("told to stop: %v", err)
	}
}
