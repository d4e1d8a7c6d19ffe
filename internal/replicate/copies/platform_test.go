//go:build platform

package copies_test

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/btrfs"
	"berth.dev/berth/internal/provision/btrfs/btrfstest"
	"berth.dev/berth/internal/provision/btrfs/kernel"
	"berth.dev/berth/internal/replicate/cert/certtest"
	"berth.dev/berth/internal/replicate/copies"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
	"berth.dev/berth/internal/run"
	"berth.dev/berth/internal/run/runtest"
)

// bulk is how much data a benchmark's volume holds, and change how much of it the increment replaces.
const (
	bulk   = 512 << 20
	change = bulk / 8
)

// disk is a node whose pool is a filesystem of btrfs on this machine, with the volume.
type disk struct {
	*btrfstest.Filesystem
	p *btrfs.Provisioner
	// started counts the processes that the provisioner started.
	started *runtest.Counter
}

func newDisk(b *testing.B, label string, size int64) disk {
	b.Helper()
	f := btrfstest.New(b, label, size)
	open, err := kernel.Open(f.FSID, true)
	must(b, err)
	must(b, open.EnableQuotas())
	open.Close()
	started := runtest.Count(run.Exec{})
	p, err := btrfs.New(btrfs.Config{Runner: started, Mounted: func() (map[string]string, error) { return map[string]string{f.FSID: label}, nil }})
	must(b, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Run(ctx) }()
	b.Cleanup(func() { stop(); <-ended; p.Wait() })
	return disk{f, p, started}
}

func (d disk) make(b *testing.B, size int64) {
	b.Helper()
	_, err := d.p.Create(b.Context(), provision.CreateRequest{ID: volume, Pool: d.Ref, Size: size, Tree: provision.Subvolume})
	must(b, err)
}

// remove deletes the volume, and returns when nothing is left of it.
func (d disk) remove(b *testing.B) {
	b.Helper()
	must(b, d.p.Delete(b.Context(), volume))
	for {
		pools, err := d.p.Report(b.Context())
		must(b, err)
		if len(pools) == 0 || len(pools[0].Wiping) == 0 {
			return
		}
		<-d.p.Changed()
	}
}

// write puts random bytes into the head.
func (d disk) write(b *testing.B, name string, seed byte, bytes int64) {
	b.Helper()
	f, err := os.Create(filepath.Join(d.Data(volume), name))
	must(b, err)
	_, err = io.CopyN(f, rand.NewChaCha8([32]byte{seed}), bytes)
	must(b, err)
	must(b, f.Sync())
	must(b, f.Close())
}

// pair is two nodes, each with a pool of btrfs on this machine. Alpha's copy of the volume is open.
type pair struct {
	*world
	alpha, beta disk
}

func newPair(b *testing.B, disk, size int64) pair {
	b.Helper()
	p := pair{alpha: newDisk(b, "alpha", disk), beta: newDisk(b, "beta", disk)}
	a := certtest.New(b)
	p.world = &world{
		t:     b,
		alpha: &node{t: b, copies: p.alpha.p.Replicator(), identity: a.Node(b, "alpha")},
		beta:  &node{t: b, copies: p.beta.p.Replicator(), identity: a.Node(b, "beta")},
	}
	p.stock = &copies.Stock{Copies: p.world.alpha.copies, Now: time.Now, Replica: func(context.Context, string, string) error { return nil }}
	p.sink = &copies.Sink{Copies: p.world.beta.copies, Node: "beta", Volume: volume}
	p.alpha.make(b, size)
	p.world.alpha.mark(provision.Mark{Promise: promise, Opened: epoch})
	_, err := p.world.alpha.copies.Writable(b.Context(), volume)
	must(b, err)
	return p
}

// keep keeps the head of alpha's copy as a point.
func (p pair) keep(seq uint64) {
	p.t.Helper()
	must(p.t, p.world.alpha.copies.Snapshot(p.t.Context(), provision.PointRequest{Volume: volume, Point: point(seq)}))
}

// bring sends a point from alpha to beta.
func (p pair) bring(base, target lineage.Point) (r stream.Received) {
	p.t.Helper()
	o := p.ask(wire.Stream{Volume: volume, From: "alpha", Epoch: epoch, Base: base, Target: target, Format: p.world.beta.copies.Abilities().Format})
	if o.failed != nil || o.failedToo != nil {
		p.t.Fatalf("%v; %v; then %s", o.failed, o.failedToo, stream.After(o.failedToo).Next)
	}
	return o.received
}

// volumeSize of the volumes of the benchmarks of bulk.
const volumeSize = 3 * bulk / 2

// points makes a pair whose volume has two points on alpha.
func points(b *testing.B) pair {
	b.Helper()
	p := newPair(b, 12*bulk, volumeSize)
	for seq, bytes := range []int64{bulk, change} {
		p.alpha.write(b, "part."+string(rune('a'+seq)), byte(seq), bytes)
		p.keep(uint64(seq) + 1)
	}
	return p
}

// BenchmarkBtrfs sends a point in full and an increment through everything: the pool, TLS over loopback, and
// the other pool.
func BenchmarkBtrfs(b *testing.B) {
	p := points(b)
	measure(b, func() { p.beta.make(b, volumeSize) }, func() { p.bring(none, point(1)); p.bring(point(1), point(2)) }, func() { p.beta.remove(b) })
}

// BenchmarkBtrfsBare does the same by the programs of btrfs and a pipe.
func BenchmarkBtrfsBare(b *testing.B) {
	p := points(b)
	alpha, beta := p.alpha, p.beta
	into := filepath.Join(beta.Top, "bare")
	must(b, os.Mkdir(into, 0o700))
	place := func(n string) string {
		return filepath.Join(alpha.Top, ".berth/volumes", volume, "points", n, "data")
	}
	for n, name := range map[string]string{"1": "one", "2": "two"} { // a name of its own for each
		btrfstest.Run(b, "btrfs", "subvolume", "snapshot", "-r", place(n), filepath.Join(alpha.Top, name))
	}
	pipe := func(script string) {
		b.Helper()
		btrfstest.Run(b, "sh", "-c", script)
	}
	measure(b, func() {}, func() {
		pipe("btrfs -q send " + alpha.Top + "/one | btrfs -q receive " + into)
		pipe("btrfs -q send -p " + alpha.Top + "/one " + alpha.Top + "/two | btrfs -q receive " + into)
		btrfstest.Run(b, "btrfs", "filesystem", "sync", into) // a point that was received by Berth is on the disk, too
	}, func() { pipe("btrfs -q subvolume delete -C " + into + "/one " + into + "/two") })
}

// measure reports the processor time of this process and of its children per GiB sent.
func measure(b *testing.B, before, do, after func()) {
	b.SetBytes(bulk + change)
	var spent time.Duration
	for b.Loop() {
		b.StopTimer()
		before()
		began := processor(b)
		b.StartTimer()
		do()
		b.StopTimer()
		spent += processor(b) - began
		after()
		b.StartTimer()
	}
	b.ReportMetric(spent.Seconds()/float64(b.N)/(float64(bulk+change)/(1<<30)), "cpu-s/GiB")
}

func processor(b *testing.B) (all time.Duration) {
	b.Helper()
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		must(b, unix.Getrusage(who, &u))
		all += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return all
}
