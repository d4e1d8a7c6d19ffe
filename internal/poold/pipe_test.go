package poold

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/apimachinery/pkg/util/wait"

	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/poold/pb"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
)

// hostile are the credentials of a connection that brings any descriptors.
type hostile struct {
	credentials.TransportCredentials
	files []*os.File
}

func (h hostile) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	_, info, err := h.TransportCredentials.ClientHandshake(ctx, authority, conn)
	return &flooding{UnixConn: conn.(*net.UnixConn), files: h.files}, info, err
}

func (h hostile) Clone() credentials.TransportCredentials { return h }

type flooding struct {
	*net.UnixConn
	files []*os.File
}

func (f *flooding) Write(b []byte) (int, error) {
	if len(f.files) == 0 {
		return f.UnixConn.Write(b)
	}
	var descriptors []int
	for _, file := range f.files {
		descriptors = append(descriptors, int(file.Fd()))
	}
	f.files = nil
	n, _, err := f.WriteMsgUnix(b, unix.UnixRights(descriptors...), nil)
	return n, err
}

// Descriptors counts those of this process.
func Descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// AreClosed waits until as few descriptors are open as before. gRPC closes a connection whose other process has
// ended in a goroutine of its own, which the end of a call and of a client do not wait for.
func AreClosed(t *testing.T, before int) {
	t.Helper()
	after := 0
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		after = Descriptors(t)
		return after == before, nil
	})
	if err != nil {
		t.Errorf("%d descriptors are open, and %d were before", after, before)
	}
}

// served runs a poold in memory and returns a client of it.
func served(t *testing.T) (c *Client, stop func()) {
	t.Helper()
	dir, err := os.MkdirTemp("", "poold")
	if err != nil {
		t.Fatal(err)
	}
	d := memory.NewDisks(memory.PoolConfig{PoolRef: provision.PoolRef{Type: provision.LVM, Name: "vg"}, Total: 100 << 22})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	s := filepath.Join(dir, "s")
	running.Go(func() {
		if err := Run(ctx, Config{Socket: s, Node: NewLocal(memory.New(d, nil), mountmemory.New(d))}); err != nil {
			t.Error(err)
		}
	})
	if c, err = Dial(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	<-c.Changed()
	return c, func() { _ = c.Close(); cancel(); running.Wait(); _ = os.RemoveAll(dir) }
}

func TestOnlyTheRightEndOfOnePipeIsTaken(t *testing.T) {
	reads, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp(t.TempDir(), "file")
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	both, err := os.OpenFile(fmt.Sprint("/proc/self/fd/", reads.Fd()), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := []*os.File{reads, writes, file, null, both}
	defer func() {
		for _, f := range all {
			_ = f.Close()
		}
	}()
	many := make([]*os.File, 100)
	for i := range many {
		many[i] = reads
	}
	for name, files := range map[string][]*os.File{
		"no descriptor": {}, "two pipes": {reads, reads}, "a hundred pipes": many, "a file": {file}, "a device": {null}, "the end to write into": {writes},
		"a pipe that is its own other end": {both},
	} {
		t.Run(name, func(t *testing.T) {
			before := Descriptors(t)
			c, stop := served(t)
			if err := receiveOver(t, c, hostile{insecure.NewCredentials(), files}); !errors.Is(err, provision.ErrInvalid) {
				t.Errorf("receiving: %v", err)
			}
			if _, err := c.Report(t.Context()); err != nil {
				t.Errorf("poold does not answer any more: %v", err)
			}
			stop()
			AreClosed(t, before)
		})
	}
}

// receiveOver calls Receive on a connection with some credentials.
func receiveOver(t *testing.T, c *Client, as credentials.TransportCredentials) error {
	t.Helper()
	conn, err := c.connect(as)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call, err := pb.NewCopiesClient(conn).Receive(t.Context())
	if err != nil {
		return fromStatus(t.Context(), err)
	}
	_ = call.Send(&pb.CopyRequest{PoolType: provision.LVM, Arguments: []byte("{}")})
	return fromStatus(t.Context(), call.RecvMsg(&pb.CopyResponse{}))
}

func TestAPipeIsTakenOnce(t *testing.T) {
	reads, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reads.Close()
	defer writes.Close()
	ends := socketPair(t)
	ours, theirs := ends[0], ends[1]
	passes, takes := &bringing{UnixConn: ours, pipe: writes}, &receiving{UnixConn: theirs}
	defer takes.Close()
	defer passes.Close()
	if _, err := passes.Write([]byte("first")); err != nil {
		t.Fatal(err)
	}
	if n, err := takes.Read(make([]byte, 10)); n != 5 || err != nil {
		t.Fatalf("%d bytes came, %v", n, err)
	}
	pipe, err := takes.take(unix.O_WRONLY)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	if _, err := pipe.WriteString("through it"); err != nil {
		t.Error(err)
	}
	if again, err := takes.take(unix.O_WRONLY); err == nil {
		again.Close()
		t.Error("the pipe was taken twice")
	}
}

func socketPair(t *testing.T) (ends [2]*net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		conn, err := net.FileConn(f)
		if err != nil {
			t.Fatal(err)
		}
		_ = f.Close()
		ends[i] = conn.(*net.UnixConn)
	}
	return ends
}
