package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
)

// Checks are the checks of a page, by name. Without any, a process that answers is healthy.
type Checks = map[string]healthz.Checker

// Of returns a check that does not depend on the request.
func Of(f func() error) healthz.Checker { return func(*http.Request) error { return f() } }

// Mux answers /healthz and /readyz. Callers add /metrics.
func Mux(live, ready Checks) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/healthz", http.StripPrefix("/healthz", &healthz.Handler{Checks: live}))
	mux.Handle("/readyz", http.StripPrefix("/readyz", &healthz.Handler{Checks: ready}))
	return mux
}

// Server answers requests. It gives up on a client that sends its request too slowly.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
}

// Serve answers requests until ctx ends. It closes the listener.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := Server(h)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // a probe that is cut off is repeated
	defer stop()
	if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving health and metrics: %w", err)
	}
	return nil
}
