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
}

func newDisk(b *testing.B, label string) disk {
	b.Helper()
	f := btrfstest.New(b, label, 12*bulk)
	open, err := kernel.Open(f.FSID, true)
	must(b, err)
	must(b, open.EnableQuotas())
	open.Close()
	p, err := btrfs.New(btrfs.Config{Runner: run.Exec{}, Mounted: func() (map[string]string, error) { return map[string]string{f.FSID: label}, nil }})
	must(b, err)
	ctx, stop := context.WithCancel(context.WithoutCancel(b.Context()))
	ended := make(chan struct{})
	go func() { defer close(ended); _ = p.Run(ctx) }()
	b.Cleanup(func() { stop(); <-ended; p.Wait() })
	return disk{f, p}
}

func (d disk) make(b *testing.B) {
	b.Helper()
	_, err := d.p.Create(b.Context(), provision.CreateRequest{ID: volume, Pool: d.Ref, Size: 3 * bulk / 2, Tree: provision.Subvolume})
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

// points makes a volume with two points on alpha.
func points(b *testing.B) (alpha, beta disk) {
	alpha, beta = newDisk(b, "alpha"), newDisk(b, "beta")
	alpha.make(b)
	r := alpha.p.Replicator()
	must(b, r.Mark(b.Context(), volume, provision.Mark{Promise: promise, Opened: epoch}))
	_, err := r.Writable(b.Context(), volume)
	must(b, err)
	for seq, bytes := range []int64{bulk, change} {
		alpha.write(b, "part", byte(seq), bytes)
		must(b, os.Rename(filepath.Join(alpha.Data(volume), "part"), filepath.Join(alpha.Data(volume), "part."+string(rune('a'+seq)))))
		must(b, r.Snapshot(b.Context(), provision.PointRequest{Volume: volume, Point: point(uint64(seq) + 1)}))
	}
	return alpha, beta
}

// BenchmarkBtrfs sends a point in full and an increment through everything: the pool, TLS over loopback, and
// the other pool.
func BenchmarkBtrfs(b *testing.B) {
	alpha, beta := points(b)
	a := certtest.New(b)
	w := &world{t: b, alpha: &node{t: b, copies: alpha.p.Replicator(), identity: a.Node(b, "alpha")}, beta: &node{t: b, copies: beta.p.Replicator(), identity: a.Node(b, "beta")}}
	w.stock = &copies.Stock{Copies: w.alpha.copies, Now: time.Now, Replica: func(context.Context, string, string) error { return nil }}
	w.sink = &copies.Sink{Copies: w.beta.copies, Node: "beta", Volume: volume}
	fetch := func(base, target lineage.Point) {
		b.Helper()
		o := w.ask(wire.Stream{Volume: volume, From: "alpha", Epoch: epoch, Base: base, Target: target, Format: w.beta.copies.Abilities().Format})
		if o.failed != nil || o.failedToo != nil {
			b.Fatalf("%v; %v; then %s", o.failed, o.failedToo, stream.After(o.failedToo).Next)
		}
	}
	measure(b, func() { beta.make(b) }, func() { fetch(none, point(1)); fetch(point(1), point(2)) }, func() { beta.remove(b) })
}

// BenchmarkBtrfsBare does the same by the programs of btrfs and a pipe.
func BenchmarkBtrfsBare(b *testing.B) {
	alpha, beta := points(b)
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
