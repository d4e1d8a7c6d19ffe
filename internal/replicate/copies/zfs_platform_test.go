//go:build platform

package copies_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/blockdev/blockdevtest"
	"berth.dev/berth/internal/provision/zfs"
	"berth.dev/berth/internal/provision/zfs/kernel"
	"berth.dev/berth/internal/provision/zfs/zfstest"
	"berth.dev/berth/internal/replicate/cert/certtest"
	"berth.dev/berth/internal/replicate/copies"
	"berth.dev/berth/internal/replicate/wire"
	"berth.dev/berth/internal/run"
)

// inZpool is how much data a zvol of the benchmarks holds: they run where processors are emulated.
const inZpool = 64 << 20

// newZpools returns two nodes with a zpool each. Alpha's zvol has its data in a point.
func newZpools(b *testing.B) *world {
	b.Helper()
	zfstest.Run(b, "modprobe", "zfs")
	a, disks := certtest.New(b), blockdevtest.Disks(b, 2)
	w := &world{t: b}
	for i, name := range []string{"alpha", "beta"} {
		zfstest.RealZpool(b, name, disks[i])
		c, _, _ := zfstest.RealConfig(b)
		c.Devices = zfstest.Alone{Devices: &kernel.Devices{}, Name: name}
		p, err := zfs.New(c)
		must(b, err)
		ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
		ended := make(chan struct{})
		go func() { defer close(ended); _ = p.Run(ctx) }()
		b.Cleanup(func() { stop(); <-ended; p.Wait() })
		_, err = p.Create(b.Context(), provision.CreateRequest{ID: volume, Pool: provision.PoolRef{Type: provision.ZFS, Name: provision.ZFSPrefix + name}, Size: 2 * inZpool})
		must(b, err)
		*[]**node{&w.alpha, &w.beta}[i] = &node{t: b, copies: p.Replicator(), identity: a.Node(b, name)}
	}
	w.stock = &copies.Stock{Copies: w.alpha.copies, Now: time.Now, Replica: func(context.Context, string, string) error { return nil }}
	w.sink = &copies.Sink{Copies: w.beta.copies, Node: "beta", Volume: volume}
	w.alpha.mark(provision.Mark{Promise: promise, Opened: epoch})
	v, err := w.alpha.copies.Writable(b.Context(), volume)
	must(b, err)
	f, err := os.OpenFile(v.Content.Source, os.O_WRONLY, 0)
	must(b, err)
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{1}), inZpool)
	must(b, errors.Join(err, f.Sync(), f.Close()))
	must(b, w.alpha.copies.Snapshot(b.Context(), provision.PointRequest{Volume: volume, Point: point(1)}))
	return w
}

// BenchmarkZFS sends a point in full from one zpool to the other. It can do so once.
func BenchmarkZFS(b *testing.B) {
	w := newZpools(b)
	b.SetBytes(inZpool)
	for b.Loop() {
		o := w.ask(wire.Stream{Volume: volume, From: "alpha", Epoch: epoch, Target: point(1), Format: w.beta.copies.Abilities().Format})
		must(b, errors.Join(o.failed, o.failedToo))
	}
}

// BenchmarkZFSBare does the same by the programs of ZFS, through the same TLS.
func BenchmarkZFSBare(b *testing.B) {
	w := newZpools(b)
	zfstest.Run(b, "zfs", "snapshot", "alpha/berth-volumes/"+volume+"@bare")
	b.SetBytes(inZpool)
	for b.Loop() {
		near, far := net.Pipe()
		config, err := w.beta.identity.Client("alpha")
		must(b, err)
		from, to := tls.Server(near, w.alpha.identity.Server()), tls.Client(far, config)
		leaving, out, err := os.Pipe()
		must(b, err)
		in, arriving, err := os.Pipe()
		must(b, err)
		all := new(errgroup.Group)
		all.Go(func() error {
			return errors.Join(program(nil, out, "send", "alpha/berth-volumes/"+volume+"@bare"), out.Close())
		})
		all.Go(func() error { return errors.Join(through(from, leaving), from.Close()) })
		all.Go(func() error { return errors.Join(through(arriving, to), arriving.Close()) })
		all.Go(func() error { return program(in, nil, "receive", "beta/bare") })
		must(b, all.Wait())
	}
}

// program runs zfs.
func program(in, out *os.File, args ...string) error {
	_, err := run.Exec{}.Change(run.Command{Operation: "zfs", Program: "zfs", Args: args, In: in, Out: out})
	return err
}

// through copies in pieces as large as a frame.
func through(to io.Writer, from io.Reader) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, wire.MaxData))
	return err
}
