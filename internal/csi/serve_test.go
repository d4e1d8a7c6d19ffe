package csi

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/go-logr/logr"
	"github.com/kubernetes-csi/csi-lib-utils/metrics"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"berth.dev/berth/api/v1alpha1"
	"berth.dev/berth/internal/driver"
	"berth.dev/berth/internal/provision"
)

// panics in every call that it does not inherit.
type panics struct{ answers }

func (*panics) Delete(context.Context, string) error { panic("boom") }

// serve runs a server and returns a connection to it and its log.
func serve(t *testing.T, v Volumes) (*grpc.ClientConn, *log, metrics.CSIMetricsManager) {
	t.Helper()
	socket := filepath.Join(shortDir(t), "csi.sock")
	listener, err := Listen(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	out := &log{}
	counters := metrics.NewCSIMetricsManagerForPlugin(v1alpha1.LocalDriverName)
	server := &Server{
		Services: []Service{&Identity{Driver: driver.Local(), Version: "v1"}, NewController(driver.Local(), v)},
		Log:      logr.FromSlogHandler(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Metrics:  counters,
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("serving ended with %v", err)
		}
	})
	conn, err := grpc.NewClient("unix:"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, out, counters
}

func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// log collects lines from several goroutines.
type log struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func TestErrorsLeaveWithTheirCodeAndAreLoggedAndCounted(t *testing.T) {
	conn, log, counters := serve(t, &answers{err: provision.ErrInUse})
	_, err := csi.NewControllerClient(conn).DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{
		VolumeId: id, Secrets: map[string]string{"password": "hunter2"},
	})
	if status.Code(err) != codes.FailedPrecondition {
		t.Errorf("got %v", err)
	}
	lines := log.String()
	for _, part := range []string{"call failed", "method=DeleteVolume", "volume=" + id, "code=FailedPrecondition"} {
		if !strings.Contains(lines, part) {
			t.Errorf("the log lacks %q:\n%s", part, lines)
		}
	}
	if strings.Contains(lines, "hunter2") {
		t.Errorf("the log has the secret:\n%s", lines)
	}
	families, err := counters.GetRegistry().Gather()
	if err != nil || !strings.Contains(families[0].String(), "DeleteVolume") {
		t.Errorf("metrics: %v, %v", families, err)
	}
}

func TestAPanicIsTheErrorOfOneCallOnly(t *testing.T) {
	conn, log, _ := serve(t, &panics{answers{volume: ext4Volume}})
	client := csi.NewControllerClient(conn)
	if _, err := client.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: id}); status.Code(err) != codes.Internal {
		t.Errorf("got %v", err)
	}
	if !strings.Contains(log.String(), "boom") || !strings.Contains(log.String(), "serve_test.go") {
		t.Errorf("the log lacks the panic and its stack:\n%s", log)
	}
	if _, err := client.CreateVolume(t.Context(), create()); err != nil {
		t.Errorf("the next call: %v", err)
	}
}

func TestACallOfAnUnannouncedCapabilityIsUnimplemented(t *testing.T) {
	conn, _, _ := serve(t, &answers{})
	_, err := csi.NewControllerClient(conn).CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("got %v", err)
	}
}

func TestProbeSaysWhetherTheDriverIsReady(t *testing.T) {
	for name, ready := range map[string]error{"ready": nil, "not ready": errors.New("starting")} {
		got, err := (&Identity{Ready: func() error { return ready }}).Probe(t.Context(), &csi.ProbeRequest{})
		if err != nil || got.GetReady().GetValue() != (ready == nil) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestListenReplacesAnOldSocketAndNothingElse(t *testing.T) {
	path := filepath.Join(shortDir(t), "csi.sock")
	first, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Close() }()
	second, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatalf("an old socket is in the way: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o660 || info.Mode().Type() != fs.ModeSocket {
		t.Errorf("%v, %v", info, err)
	}
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}

	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), path); err == nil {
		t.Error("a file was taken for a socket")
	}
	if content, err := os.ReadFile(path); err != nil || string(content) != "precious" {
		t.Errorf("the file is now %q, %v", content, err)
	}
}
