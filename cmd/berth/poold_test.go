package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"berth.dev/berth/internal/agent/metrics"
	"berth.dev/berth/internal/run"
)

func get(t *testing.T, url string) (status int, body string) {
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
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(all)
}

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
		if status, body := get(t, url+path); status != want.status || !strings.Contains(body, want.part) {
			t.Errorf("%s: %d without %q: %.300s", path, status, want.part, body)
		}
	}
	if _, body := get(t, url+"/metrics"); !strings.Contains(body, "process_cpu_seconds_total") {
		t.Error("what the process uses is not shown")
	}
	cancel()
	if err := <-served; err != nil {
		t.Errorf("told to stop: %v", err)
	}
}
