package controller

import (
	"errors"
	"net"
	"time"

	csimetrics "github.com/kubernetes-csi/csi-lib-utils/metrics"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"berth.dev/berth/internal/health"
)

var errNotSynced = errors.New("the caches are not filled yet")

// readiness is nil once the channel is closed.
func readiness(synced <-chan struct{}) func() error {
	return func() error {
		select {
		case <-synced:
			return nil
		default:
			return errNotSynced
		}
	}
}

// httpServer answers health checks and metrics. Healthy means that the process
// answers; ready means that calls can be served. Neither asks the API server:
// restarting the controller does not bring the API server back.
func httpServer(listener net.Listener, ready func() error, counters csimetrics.CSIMetricsManager) *manager.Server {
	mux := health.Mux(nil, health.Checks{"caches": health.Of(ready)})
	counters.WithAdditionalRegistry(metrics.Registry).RegisterToServer(mux, "/metrics")
	return &manager.Server{
		Name:            "health and metrics",
		Server:          health.Server(mux),
		Listener:        listener,
		ShutdownTimeout: ptr.To(time.Second),
	}
}
