// Package register makes a CSI driver known to the kubelet. The kubelet watches a
// directory for sockets and asks the process at each of them which plugin it is. The
// package takes the place of the node-driver-registrar sidecar.
//
// The socket is made again when it vanishes: an administrator, or a node that
// is set up anew, may empty the kubelet's directory while the agent lives.
package register

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"google.golang.org/grpc"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	"k8s.io/utils/clock"
)

// look is how often the socket is looked for. Looking is one system call; a
// watch on the directory would itself vanish with the directory.
const look = time.Second

// Server offers one driver to the kubelet.
type Server struct {
	registerapi.UnimplementedRegistrationServer
	// Driver's name and the path of its CSI socket on the host.
	Driver, Endpoint string
	// Socket to listen on, in the kubelet's plugins_registry.
	Socket string
	Clock  clock.WithTicker
	Log    logr.Logger

	registered atomic.Bool
}

// Registered says whether the kubelet has accepted the driver since the socket
// was last made.
func (s *Server) Registered() bool { return s.registered.Load() }

// GetInfo tells the kubelet what the driver is.
func (s *Server) GetInfo(context.Context, *registerapi.InfoRequest) (*registerapi.PluginInfo, error) {
	return &registerapi.PluginInfo{
		Type:              registerapi.CSIPlugin,
		Name:              s.Driver,
		Endpoint:          s.Endpoint,
		SupportedVersions: []string{"1.0.0"},
	}, nil
}

// NotifyRegistrationStatus receives the outcome of the registration. The kubelet tries
// again while the socket is there, so a failure is only logged.
func (s *Server) NotifyRegistrationStatus(_ context.Context, r *registerapi.RegistrationStatus) (*registerapi.RegistrationStatusResponse, error) {
	s.registered.Store(r.GetPluginRegistered())
	if r.GetPluginRegistered() {
		s.Log.Info("registered with the kubelet", "driver", s.Driver)
	} else {
		s.Log.Error(errors.New(r.GetError()), "the kubelet refused the driver", "driver", s.Driver)
	}
	return &registerapi.RegistrationStatusResponse{}, nil
}

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := s.serve(ctx); err != nil && ctx.Err() == nil {
			s.Log.Error(err, "offering the driver to the kubelet failed, trying again", "socket", s.Socket)
			s.pause(ctx)
		}
	}
	return nil
}

func (s *Server) pause(ctx context.Context) {
	timer := s.Clock.NewTimer(look)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}

// serve listens until the socket vanishes or the context ends.
func (s *Server) serve(ctx context.Context) error {
	if err := os.Remove(s.Socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing old registration socket: %w", err)
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", s.Socket)
	if err != nil {
		return fmt.Errorf("opening registration socket: %w", err)
	}
	if unix, ok := listener.(*net.UnixListener); ok {
		// When this listener closes, the path may hold another process's socket.
		unix.SetUnlinkOnClose(false)
	}
	own, err := os.Lstat(s.Socket)
	if err != nil {
		return errors.Join(fmt.Errorf("inspecting registration socket: %w", err), listener.Close())
	}
	server := grpc.NewServer()
	registerapi.RegisterRegistrationServer(server, s)
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()

	s.watch(ctx, own)
	s.registered.Store(false)
	server.Stop()
	if err := <-failed; err != nil {
		return fmt.Errorf("serving registration: %w", err)
	}
	return s.clear(ctx, own)
}

// watch returns when the path no longer holds the socket that serve made, or when the
// context ends.
func (s *Server) watch(ctx context.Context, own os.FileInfo) {
	ticker := s.Clock.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		if now, err := os.Lstat(s.Socket); err != nil || !os.SameFile(own, now) {
			s.Log.Info("the registration socket vanished and is made again", "socket", s.Socket)
			return
		}
	}
}

// clear removes the socket at the end, so that the kubelet does not ask a
// driver that is not there.
func (s *Server) clear(ctx context.Context, own os.FileInfo) error {
	if ctx.Err() == nil {
		return nil
	}
	if now, err := os.Lstat(s.Socket); err == nil && os.SameFile(own, now) {
		return os.Remove(s.Socket)
	}
	return nil // gone already, or another process's
}
