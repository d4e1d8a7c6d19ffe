package health

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Checks are the checks of a page, by name. Without any, a process that answers is healthy.
type Checks = map[string]healthz.Checker

// Of returns a check that does not depend on the request.
func Of(f func() error) healthz.Checker { return func(*http.Request) error { return f() } }

// Mux answers /healthz and /readyz. Callers add /metrics.
func Mux(live, ready Checks) *http.ServeMux {
	mux := http.NewServeMux()
	for path, checks := range map[string]Checks{"/healthz": live, "/readyz": ready} {
		logged := Checks{}
		for name, check := range checks {
			logged[name] = telling(log.Log.WithValues("page", path, "check", name), check)
		}
		mux.Handle(path, http.StripPrefix(path, &healthz.Handler{Checks: logged}))
	}
	return mux
}

// telling logs why a check fails, when that changes. The page withholds the reason: clients that may not know it
// read the page, too.
func telling(l logr.Logger, check healthz.Checker) healthz.Checker {
	var mu sync.Mutex
	last := ""
	return func(r *http.Request) error {
		err := check(r)
		said := ""
		if err != nil {
			said = err.Error()
		}
		mu.Lock()
		defer mu.Unlock()
		switch {
		case said == last:
		case err == nil:
			l.Info("the check passes again")
		default:
			l.Info("the check fails", "reason", said)
		}
		last = said
		return err
	}
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
