package poold

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"berth.dev/berth/internal/poold/pb"
)

// stopGrace is how long running calls may take when poold stops. The changes that
// they began are finished in any case; only their answers may be lost.
const stopGrace = 10 * time.Second

// Config of a served Node.
type Config struct {
	// Socket is the path of the unix socket.
	Socket string
	// Node to serve.
	Node Node
	// Healthy returns an error that says why the node's pools cannot be managed. A nil
	// function means that they always can.
	Healthy func() error
}

// Run serves a Node on a unix socket until ctx ends.
func Run(ctx context.Context, c Config) error {
	listener, err := listen(ctx, c.Socket)
	if err != nil {
		return err
	}
	changes := newBroadcast()
	g := grpc.NewServer(grpc.Creds(peerCredentials{}), grpc.UnaryInterceptor(recoverPanic), grpc.StreamInterceptor(recoverStream))
	pb.RegisterPooldServer(g, &server{node: c.Node, changes: changes})
	pb.RegisterCopiesServer(g, &copiesServer{node: c.Node, stopping: changes.done})
	healthpb.RegisterHealthServer(g, health{healthy: c.Healthy})

	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() error {
		changes.run(c.Node.Changed(), ctx.Done())
		return nil
	})
	work.Go(func() error {
		<-ctx.Done()
		hurry := time.AfterFunc(stopGrace, g.Stop)
		defer hurry.Stop()
		g.GracefulStop()
		return nil
	})
	work.Go(func() error {
		if err := g.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("serving %s: %w", c.Socket, err)
		}
		return nil
	})
	return work.Wait()
}

// listen replaces the socket of a process that has died, but not that of a process that
// still serves it.
func listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(socket), 0o700); err != nil {
		return nil, fmt.Errorf("making socket directory: %w", err)
	}
	var d net.Dialer
	if conn, err := d.DialContext(ctx, "unix", socket); err == nil {
		conn.Close()
		return nil, fmt.Errorf("another process serves %s: stop it or choose another socket", socket)
	}
	if info, err := os.Lstat(socket); err == nil && info.Mode().Type() == os.ModeSocket {
		if err := os.Remove(socket); err != nil {
			return nil, fmt.Errorf("removing stale socket: %w", err)
		}
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		listener.Close()
		return nil, fmt.Errorf("protecting socket: %w", err)
	}
	return listener, nil
}

// recoverPanic turns a panic in one call into its error, so that the other calls go on.
func recoverPanic(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (response any, err error) {
	defer func() { err = panicked(recover(), info.FullMethod, err) }()
	return handler(ctx, req)
}

func recoverStream(service any, call grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() { err = panicked(recover(), info.FullMethod, err) }()
	return handler(service, call)
}

// panicked returns the error of a panic, or err if there was none.
func panicked(p any, method string, err error) error {
	if p == nil {
		return err
	}
	return status.Errorf(codes.Internal, "panic in %s: %v\n%s", method, p, debug.Stack())
}

// health answers from memory. It starts no process, so a probe every few seconds costs
// nothing.
type health struct {
	healthpb.UnimplementedHealthServer
	healthy func() error
}

func (h health) Check(context.Context, *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	serving := healthpb.HealthCheckResponse_SERVING
	if h.healthy != nil && h.healthy() != nil {
		serving = healthpb.HealthCheckResponse_NOT_SERVING
	}
	return &healthpb.HealthCheckResponse{Status: serving}, nil
}
