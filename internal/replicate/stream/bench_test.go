package stream_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/replicate/wire"
)

// bulk is how many bytes one stream of the benchmarks has.
const bulk = 1 << 30

// spending reports the processor time per GiB of both ends, which other work on the machine changes less
// than it changes the wall clock.
func spending(b *testing.B) (report func()) {
	b.Helper()
	before := processor(b)
	return func() { b.ReportMetric((processor(b)-before).Seconds()/float64(b.N)/(bulk>>30), "cpu-s/GiB") }
}

func processor(b *testing.B) time.Duration {
	b.Helper()
	var all time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		check(b, unix.Getrusage(who, &u))
		all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return all
}

// endless gives the same random MiB again and again.
type endless struct {
	block []byte
	left  int
}

func (e *endless) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), e.left)], e.block)
	e.left -= n
	return n, nil
}

// connected are two ends of a connection over loopback.
func connected(b *testing.B) (near, far net.Conn) {
	b.Helper()
	listener, err := new(net.ListenConfig).Listen(b.Context(), "tcp", "127.0.0.1:0")
	check(b, err)
	defer listener.Close()
	far, err = new(net.Dialer).DialContext(b.Context(), "tcp", listener.Addr().String())
	check(b, err)
	near, err = listener.Accept()
	check(b, err)
	return near, far
}

// BenchmarkStream sends 1 GiB from memory to nowhere over loopback.
func BenchmarkStream(b *testing.B) {
	e := newEnds(b, nil)
	e.from.snapshots[target] = []byte{1}
	e.from.source = func(context.Context, []byte) io.Reader { return &endless{block: random(1 << 20), left: bulk} }
	b.SetBytes(bulk)
	defer spending(b)()
	for b.Loop() {
		e.near, e.far = connected(b)
		e.to = newPool(nil)
		e.to.drop = true
		o := e.run(b.Context())
		check(b, errors.Join(o.sendErr, o.recvErr))
	}
}

// BenchmarkEightStreams has a process be both ends of eight streams at once, and reports the most memory that it
// ever had.
func BenchmarkEightStreams(b *testing.B) {
	const streams = 8
	e := newEnds(b, nil)
	b.SetBytes(streams * bulk)
	for b.Loop() {
		all := new(errgroup.Group)
		for range streams {
			one := e.again(nil)
			one.from.snapshots[target] = []byte{1}
			one.from.source = func(context.Context, []byte) io.Reader { return &endless{block: random(1 << 20), left: bulk} }
			one.near, one.far = connected(b)
			one.to = newPool(nil)
			one.to.drop = true
			all.Go(func() error {
				o := one.run(b.Context())
				return errors.Join(o.sendErr, o.recvErr)
			})
		}
		check(b, all.Wait())
	}
	b.ReportMetric(peak(b), "peak-MiB")
}

// peak returns the most memory that this process ever had, in MiB.
func peak(b *testing.B) (mib float64) {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	check(b, err)
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, err := fmt.Sscan(rest, &mib) // in KiB
			check(b, err)
		}
	}
	return mib / 1024
}

// BenchmarkBareTLS copies 1 GiB in the same way by crypto/tls alone, with the same hash at both ends.
func BenchmarkBareTLS(b *testing.B) {
	e := newEnds(b, nil)
	b.SetBytes(bulk)
	defer spending(b)()
	for b.Loop() {
		near, far := connected(b)
		sent := make(chan error, 1)
		go func() {
			conn := tls.Server(near, e.alpha.Server())
			hash := xxhash.New()
			_, err := copyHashed(conn, &endless{block: random(1 << 20), left: bulk}, hash)
			sent <- errors.Join(err, conn.Close())
		}()
		config, err := e.beta.Client("alpha")
		check(b, err)
		n, err := copyHashed(io.Discard, tls.Client(far, config), xxhash.New())
		check(b, errors.Join(err, <-sent))
		if n != bulk {
			b.Fatalf("%d bytes arrived", n)
		}
	}
}

// copyHashed copies in pieces as large as a frame.
func copyHashed(to io.Writer, from io.Reader, hash *xxhash.Digest) (total int, err error) {
	buf := make([]byte, wire.MaxData)
	for {
		n, err := io.ReadFull(from, buf)
		_, _ = hash.Write(buf[:n])
		if _, err := to.Write(buf[:n]); err != nil {
			return total, err
		}
		total += n
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// BenchmarkSSH copies 1 GiB in the same way through ssh with its default cipher. BERTH_SSH is the program that
// hack/ssh makes.
func BenchmarkSSH(b *testing.B) {
	program := os.Getenv("BERTH_SSH")
	if program == "" {
		b.Fatal("BERTH_SSH does not say which program runs ssh: make bench-stream sets it")
	}
	b.SetBytes(bulk)
	defer spending(b)()
	for b.Loop() {
		cmd := exec.CommandContext(b.Context(), program, "cat >/dev/null") //nolint:forbidigo // package stream may not import package run
		cmd.Stdin, cmd.Stderr = &endless{block: random(1 << 20), left: bulk}, os.Stderr
		check(b, cmd.Run())
	}
}
