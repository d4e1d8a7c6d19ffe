package poold_test

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/lineage"
	mountmemory "berth.dev/berth/internal/mount/memory"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/poold"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/provision/memory/memorytest"
)

// The tests below run this program again as one of the two processes, and kill it.
const (
	asPoold  = "POOLD_TEST_SERVES"
	asCaller = "POOLD_TEST_CALLS"
)

var (
	epoch   = lineage.Epoch{Number: 1, ID: "one"}
	promise = ownership.Promise{Epoch: epoch, Primary: "alpha", Boot: "boot-1", Lineage: lineage.Lineage{{Epoch: epoch}}}
	first   = lineage.Point{Epoch: epoch, Seq: 1}
)

// again runs the test that is under way in another process, in another role. What it prints is out.
func again(t *testing.T, role, socket string) (p *os.Process, out *os.File) {
	t.Helper()
	out, prints, err := os.Pipe()
	must(t, err)
	p, err = os.StartProcess("/proc/self/exe", []string{"poold.test", "-test.run=^" + t.Name() + "$"}, &os.ProcAttr{
		Env: append(os.Environ(), role+"="+socket), Files: []*os.File{nil, prints, os.Stderr},
	})
	must(t, err)
	must(t, prints.Close())
	t.Cleanup(func() { kill(p) })
	return p, out
}

func kill(p *os.Process) {
	_ = p.Kill()
	_, _ = p.Wait()
}

// pointed makes a volume with a point.
func pointed(t *testing.T, p provision.Provisioner, copies provision.Replicator) {
	t.Helper()
	_, err := p.Create(t.Context(), provision.CreateRequest{ID: "pvc-1", Pool: pool, Size: unit})
	if err == nil {
		err = copies.Mark(t.Context(), "pvc-1", provision.Mark{Promise: promise, Opened: epoch})
	}
	if err == nil {
		_, err = copies.Writable(t.Context(), "pvc-1")
	}
	if err == nil {
		err = copies.Snapshot(t.Context(), provision.PointRequest{Volume: "pvc-1", Point: first})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// header is that of a stream of the first point.
func header(volume string) provision.StreamHeader {
	return provision.StreamHeader{Volume: volume, Stream: ownership.Stream{Promise: promise, Target: first, Size: unit}, From: "alpha", Format: "memory-1"}
}

// blocked returns a pipe that has room for one frame of a stream, so that a sender waits.
func blocked() (reads, writes *os.File, err error) {
	if reads, writes, err = os.Pipe(); err == nil {
		_, err = writes.Write(make([]byte, pipeSize))
	}
	return reads, writes, err
}

const (
	pipeSize = 1<<16 - 20
	oneFrame = 16
)

// waiting returns how many bytes are in a pipe.
func waiting(t *testing.T, reads *os.File) (bytes int) {
	t.Helper()
	raw, err := reads.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) { bytes, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }))
	must(t, err)
	return bytes
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until asks again and again until a stream is under way, or has ended.
func until(t *testing.T, ended <-chan error, underWay func() bool) {
	t.Helper()
	for !underWay() {
		select {
		case err := <-ended:
			t.Fatalf("the stream ended before its end: %v", err)
		default:
		}
	}
}

func TestAPooldThatIsKilledEndsTheStreamsOfItsCallers(t *testing.T) {
	if s := os.Getenv(asPoold); s != "" {
		must(t, poold.Run(t.Context(), poold.Config{Socket: s, Node: localNode(newDisks())}))
		return
	}
	before := poold.Descriptors(t)
	s := socket(t)
	p, out := again(t, asPoold, s)
	client := connected(t, s)
	copies := replicator(t, client, provision.LVM)
	pointed(t, client, copies)
	_, err := client.Create(t.Context(), provision.CreateRequest{ID: "pvc-2", Pool: pool, Size: unit})
	must(t, err)

	reads, writes, err := blocked()
	must(t, err)
	sent, received := make(chan error, 1), make(chan error, 1)
	go func() {
		sent <- copies.Send(t.Context(), provision.SendRequest{Volume: "pvc-1", Target: first}, writes)
	}()
	until(t, sent, func() bool { return waiting(t, reads) == pipeSize+oneFrame })
	from, to, err := os.Pipe()
	must(t, err)
	go func() { received <- copies.Receive(t.Context(), header("pvc-2"), from) }()
	until(t, received, func() bool {
		state, err := copies.State(t.Context(), "pvc-2")
		must(t, err)
		return state.Receiving != nil
	})
	kill(p)
	for what, ended := range map[string]chan error{"sending": sent, "receiving": received} {
		if err := <-ended; !errors.Is(err, provision.ErrUnavailable) {
			t.Errorf("%s ended with %v", what, err)
		}
	}
	for _, f := range []*os.File{reads, writes, from, to, out} {
		_ = f.Close()
	}
	_ = client.Close()
	poold.AreClosed(t, before)
}

// told is a Replicator that tells when a stream has ended.
type told struct {
	provision.Replicator
	sent, received chan error
}

func (r told) Send(ctx context.Context, q provision.SendRequest, pipe *os.File) error {
	err := r.Replicator.Send(ctx, q, pipe)
	r.sent <- err
	return err
}

func (r told) Receive(ctx context.Context, h provision.StreamHeader, pipe *os.File) error {
	err := r.Replicator.Receive(ctx, h, pipe)
	r.received <- err
	return err
}

func TestACallerThatIsKilledEndsItsStreams(t *testing.T) {
	if s := os.Getenv(asCaller); s != "" {
		callAndHang(t, s)
		return
	}
	before := poold.Descriptors(t)
	s, d := socket(t), newDisks()
	disks := memory.New(d, nil)
	copies := told{disks.Replicator(), make(chan error, 1), make(chan error, 1)}
	pointed(t, disks, copies)
	_, err := disks.Create(t.Context(), provision.CreateRequest{ID: "pvc-2", Pool: pool, Size: unit})
	must(t, err)
	all := provision.NewMux(provision.Member{Types: []string{provision.LVM}, Provisioner: memorytest.Replicating{Provisioner: disks, Copies: copies}})
	stop := serve(t, poold.Config{Socket: s, Node: poold.NewLocal(all, mountmemory.New(d))})
	p, out := again(t, asCaller, s)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "sends\n" {
		t.Fatalf("the caller says %q, %v", line, err)
	}
	until(t, copies.received, func() bool {
		state, err := copies.State(t.Context(), "pvc-2")
		must(t, err)
		return state.Receiving != nil
	})
	kill(p)
	if err := <-copies.sent; err == nil {
		t.Error("a stream that nobody read was sent")
	}
	if err := <-copies.received; err == nil {
		t.Error("a stream without an end was received")
	}
	state, err := copies.State(t.Context(), "pvc-2")
	if err != nil || len(state.Points) > 0 {
		t.Errorf("the copy is %+v, %v", state, err)
	}
	must(t, copies.Abort(t.Context(), "pvc-2"))
	stop()
	must(t, out.Close())
	poold.AreClosed(t, before)
}

// callAndHang sends and receives, and never ends. It says a line when the first stream is under way.
func callAndHang(t *testing.T, socket string) {
	t.Helper()
	client := connected(t, socket)
	copies := replicator(t, client, provision.LVM)
	reads, writes, err := blocked()
	must(t, err)
	sent := make(chan error, 1)
	go func() {
		sent <- copies.Send(t.Context(), provision.SendRequest{Volume: "pvc-1", Target: first}, writes)
	}()
	until(t, sent, func() bool { return waiting(t, reads) == pipeSize+oneFrame })
	_, err = os.Stdout.WriteString("sends\n")
	must(t, err)
	from, to, err := os.Pipe()
	must(t, err)
	_ = copies.Receive(t.Context(), header("pvc-2"), from)
	_ = to.Close()
}

func TestAPooldThatStopsEndsStreamsAtOnce(t *testing.T) {
	s := socket(t)
	stop := serve(t, poold.Config{Socket: s, Node: localNode(newDisks())})
	client := connected(t, s)
	copies := replicator(t, client, provision.LVM)
	pointed(t, client, copies)
	reads, writes, err := blocked()
	must(t, err)
	defer reads.Close()
	defer writes.Close()
	sent := make(chan error, 1)
	go func() {
		sent <- copies.Send(t.Context(), provision.SendRequest{Volume: "pvc-1", Target: first}, writes)
	}()
	until(t, sent, func() bool { return waiting(t, reads) == pipeSize+oneFrame })
	stop()
	// A call that poold waited for in vain has another text.
	if err := <-sent; !errors.Is(err, provision.ErrUnavailable) || !strings.Contains(err.Error(), "poold stops") {
		t.Errorf("sending ended with %v", err)
	}
}
