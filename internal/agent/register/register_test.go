package register

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/testing/protocmp"
	registerapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
	clocktesting "k8s.io/utils/clock/testing"
)

const patience = 10 * time.Second

// start offers a driver in a directory of its own.
func start(t *testing.T) (*Server, *clocktesting.FakeClock) {
	t.Helper()
	return startIn(t, t.TempDir())
}

func startIn(t *testing.T, dir string) (*Server, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	s := &Server{
		Driver: "local.berth.dev", Endpoint: "/csi.sock", Socket: filepath.Join(dir, "reg.sock"),
		Clock: clock, Log: logr.Discard(),
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
		if _, err := os.Lstat(s.Socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left behind: %v", err)
		}
	})
	return s, clock
}

// kubelet connects as the kubelet does, waiting for the socket.
func kubelet(t *testing.T, s *Server) registerapi.RegistrationClient {
	t.Helper()
	conn, err := grpc.NewClient("unix:"+s.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return registerapi.NewRegistrationClient(conn)
}

func checkInfo(t *testing.T, k registerapi.RegistrationClient) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	got, err := k.GetInfo(ctx, &registerapi.InfoRequest{})
	if err != nil {
		t.Fatal(err)
	}
	want := &registerapi.PluginInfo{Type: "CSIPlugin", Name: "local.berth.dev", Endpoint: "/csi.sock", SupportedVersions: []string{"1.0.0"}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
}

func TestTheKubeletLearnsTheDriverAndReportsItsRegistration(t *testing.T) {
	s, _ := start(t)
	k := kubelet(t, s)
	checkInfo(t, k)
	if s.Registered() {
		t.Error("registered before the kubelet said so")
	}
	for _, accepted := range []bool{true, false, true} {
		if _, err := k.NotifyRegistrationStatus(t.Context(), &registerapi.RegistrationStatus{PluginRegistered: accepted, Error: "no"}); err != nil {
			t.Fatal(err)
		}
		if s.Registered() != accepted {
			t.Errorf("registered: %v; want %v", s.Registered(), accepted)
		}
	}
}

func TestASocketThatVanishesIsMadeAgain(t *testing.T) {
	s, clock := start(t)
	checkInfo(t, kubelet(t, s))
	if err := os.Remove(s.Socket); err != nil {
		t.Fatal(err)
	}
	await(t, func() bool {
		clock.Step(look)
		_, err := os.Lstat(s.Socket)
		return err == nil
	})
	checkInfo(t, kubelet(t, s))
	if s.Registered() {
		t.Error("still registered although the kubelet has not asked again")
	}
}

func TestASocketOfAnEarlierLifeIsReplaced(t *testing.T) {
	dir := t.TempDir()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", filepath.Join(dir, "reg.sock"))
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	s, _ := startIn(t, dir)
	checkInfo(t, kubelet(t, s))
}

func TestTheSocketOfAnotherProcessIsNotRemoved(t *testing.T) {
	s := &Server{Socket: filepath.Join(t.TempDir(), "reg.sock")}
	var infos []os.FileInfo
	for range 2 {
		if err := os.WriteFile(s.Socket+".new", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(s.Socket+".new", s.Socket); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(s.Socket)
		if err != nil {
			t.Fatal(err)
		}
		infos = append(infos, info)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.clear(ctx, infos[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(s.Socket); err != nil {
		t.Errorf("the other process's socket: %v", err)
	}
	if err := s.clear(ctx, infos[1]); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(s.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the own socket: %v", err)
	}
}

// await polls a condition of the outside world, the file system.
func await(t *testing.T, done func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-deadline:
			t.Fatal("it does not happen")
		case <-tick.C:
		}
	}
}
