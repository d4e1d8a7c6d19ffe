package agent

import (
	"context"
	"errors"
	"net/http"
	"time"

	csimetrics "github.com/kubernetes-csi/csi-lib-utils/metrics"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"berth.dev/berth/internal/csi"
	"berth.dev/berth/internal/health"
)

// probeTimeout bounds a health check.
const probeTimeout = 5 * time.Second

var errNotRegistered = errors.New("the kubelet has not accepted the driver yet")

// serveHTTP answers health checks and metrics until ctx ends.
func (a *Agent) serveHTTP(ctx context.Context, pinger *csi.Pinger, counters csimetrics.CSIMetricsManager) error {
	live := health.Checks{"csi": func(r *http.Request) error {
		ctx, cancel := context.WithTimeout(r.Context(), probeTimeout)
		defer cancel()
		return pinger.Ping(ctx)
	}}
	mux := health.Mux(live, health.Checks{
		"csi":     live["csi"],
		"pools":   health.Of(func() error { return a.observer.Latest().Err }),
		"kubelet": health.Of(a.accepted),
	})
	counters.WithAdditionalRegistry(ctrlmetrics.Registry).RegisterToServer(mux, "/metrics")
	return health.Serve(ctx, a.options.HTTP, mux)
}

// accepted returns nil if the kubelet has accepted the driver, or the agent does not register.
func (a *Agent) accepted() error {
	if a.options.RegistrationSocket == "" || a.register.Registered() {
		return nil
	}
	return errNotRegistered
}
