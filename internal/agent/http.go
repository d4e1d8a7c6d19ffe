package agent

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	csimetrics "github.com/kubernetes-csi/csi-lib-utils/metrics"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"berth.dev/berth/internal/csi"
)

// probeTimeout bounds a health check.
const probeTimeout = 5 * time.Second

var errNotRegistered = errors.New("the kubelet has not accepted the driver yet")

// serveHTTP answers health checks and metrics until ctx ends.
func (a *Agent) serveHTTP(ctx context.Context, pinger *csi.Pinger, counters csimetrics.CSIMetricsManager) error {
	mux := http.NewServeMux()
	live := map[string]healthz.Checker{"csi": func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
		defer cancel()
		return pinger.Ping(ctx)
	}}
	ready := map[string]healthz.Checker{
		"csi":     live["csi"],
		"pools":   func(*http.Request) error { return a.observer.Latest().Err },
		"kubelet": func(*http.Request) error { return a.accepted() },
	}
	mux.Handle("/healthz", http.StripPrefix("/healthz", &healthz.Handler{Checks: live}))
	mux.Handle("/readyz", http.StripPrefix("/readyz", &healthz.Handler{Checks: ready}))
	counters.WithAdditionalRegistry(ctrlmetrics.Registry).RegisterToServer(mux, "/metrics")

	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // a probe is asked again elsewhere
	defer stop()
	if err := server.Serve(a.options.HTTP); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving health and metrics: %w", err)
	}
	return nil
}

// accepted returns nil if the kubelet knows the driver, or is not to know it.
func (a *Agent) accepted() error {
	if a.options.RegistrationSocket == "" || a.register.Registered() {
		return nil
	}
	return errNotRegistered
}
