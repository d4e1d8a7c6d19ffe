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

// Checks are what is asked, by name. Without any, a process is well that answers.
type Checks = map[string]healthz.Checker

// Of is a check that does not depend on the request.
func Of(f func() error) healthz.Checker { return func(*http.Request) error { return f() } }

// Mux answers /healthz and /readyz; /metrics is added to it.
func Mux(live, ready Checks) *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("/healthz", http.StripPrefix("/healthz", &healthz.Handler{Checks: live}))
	mux.Handle("/readyz", http.StripPrefix("/readyz", &healthz.Handler{Checks: ready}))
	return mux
}

// Server answers requests, and gives up on who is slow to ask.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
}

// Serve answers requests until ctx ends. It closes the listener.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := Server(h)
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // a probe is asked again elsewhere
	defer stop()
	if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving health and metrics: %w", err)
	}
	return nil
}
