package csi

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"google.golang.org/grpc"
)

// grace is how long calls in progress may take after the server was told to
// stop. A change that such a call has begun continues after it.
const grace = 5 * time.Second

// Service is one of the CSI services.
type Service interface {
	Register(s grpc.ServiceRegistrar)
}

// Server serves CSI on one socket.
type Server struct {
	Services []Service
	Log      logr.Logger
	Metrics  metrics.CSIMetricsManager
}

// Listen opens a unix socket. It replaces a socket that an earlier process left. The
// socket's owner and group may connect.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("inspecting CSI socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("opening CSI socket: %s exists and is not a socket", path)
	default:
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("removing old CSI socket: %w", err)
		}
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("opening CSI socket: %w", err)
	}
	if err := os.Chmod(path, 0o660); err != nil {
		return nil, errors.Join(fmt.Errorf("restricting CSI socket: %w", err), listener.Close())
	}
	return listener, nil
}

// Serve serves until ctx ends, and then lets calls in progress finish for a few
// seconds before their contexts are cancelled.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(
		s.observe,
		classify,
		recovery.UnaryServerInterceptor(recovery.WithRecoveryHandlerContext(s.recover)),
	))
	for _, service := range s.Services {
		service.Register(server)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		force := time.AfterFunc(grace, server.Stop)
		defer force.Stop()
		server.GracefulStop()
	}()
	if err := server.Serve(listener); err != nil {
		return fmt.Errorf("serving CSI: %w", err)
	}
	<-stopped
	return nil
}
