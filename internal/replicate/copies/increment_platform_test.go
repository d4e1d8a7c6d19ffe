//go:build platform

package copies_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/provision"
)

// file is a volume's file that is written in place.
type file struct {
	b    *testing.B
	f    *os.File
	size int64
	from *rand.Rand
	text []byte
}

// open makes a file of a size in the head, without data.
func (d disk) open(b *testing.B, name string, size int64) *file {
	b.Helper()
	f, err := os.Create(filepath.Join(d.Data(volume), name))
	must(b, err)
	b.Cleanup(func() { must(b, f.Close()) })
	must(b, f.Truncate(size))
	w := &file{b: b, f: f, size: size, from: rand.New(rand.NewPCG(1, 2)), text: make([]byte, 1<<20)} //nolint:gosec // a benchmark's data
	_, _ = rand.NewChaCha8([32]byte{7}).Read(w.text)
	return w
}

// scatter writes pieces of so many bytes at places that are a multiple of that, by chance.
func (w *file) scatter(pieces, bytes int64) {
	w.b.Helper()
	for range pieces {
		must(w.b, w.put(w.from.Int64N(w.size/bytes)*bytes, bytes))
	}
	must(w.b, w.f.Sync())
}

func (w *file) put(at, bytes int64) error {
	w.text[0]++ // other data than before
	_, err := w.f.WriteAt(w.text[:bytes], at)
	return err
}

// used returns how many bytes of a filesystem are taken.
func (d disk) used(b *testing.B) int64 {
	b.Helper()
	f, err := os.Open(d.Top)
	must(b, err)
	defer f.Close()
	must(b, unix.Syncfs(int(f.Fd())))
	var st unix.Statfs_t
	must(b, unix.Statfs(d.Top, &st))
	return int64(st.Blocks-st.Bfree) * st.Bsize //nolint:gosec // far below
}

// processes returns how many both nodes started since the last call.
func (p pair) processes() (n int) {
	for _, d := range []disk{p.alpha, p.beta} {
		for _, each := range d.started.Take() {
			n += each
		}
	}
	return n
}

// BenchmarkIncrement counts what increments cost: after one write of 4 KiB, and of a large sparse volume of
// whose data 1 % was written while the other node was away.
func BenchmarkIncrement(b *testing.B) {
	const (
		size  = 64 << 30
		piece = 64 << 10
		data  = 1 << 30
		away  = 5 // points that beta misses
	)
	for b.Loop() {
		p := newPair(b, 8*size, size+size/2) // each point is charged as the volume
		w := p.alpha.open(b, "database", size)
		w.scatter(data/piece, piece)
		p.keep(1)
		p.beta.make(b, size+size/2)
		full := p.bring(none, point(1))
		taken := p.beta.used(b)

		p.processes()
		must(b, errors.Join(w.put(0, 4<<10), w.f.Sync()))
		p.keep(2)
		b.ReportMetric(float64(p.bring(point(1), point(2)).Progress.Wire), "4KiB-B")
		b.ReportMetric(float64(p.processes()), "4KiB-processes")

		for seq := range uint64(away) {
			w.scatter(data/piece/100/away, piece)
			p.keep(3 + seq)
		}
		behind := p.bring(point(2), point(2+away))
		b.ReportMetric(100*float64(behind.Progress.Raw)/float64(full.Progress.Raw), "churn-%")
		b.ReportMetric(100*float64(p.beta.used(b)-taken)/float64(taken), "churn-room-%")
	}
}

// BenchmarkIdle counts what an interval costs a node with 1,000 copies in which nothing is written.
func BenchmarkIdle(b *testing.B) {
	const volumes = 1000
	p := newPair(b, 128*bulk, 1<<20)
	of := p.world.alpha.copies
	ids := []string{volume}
	p.keep(1)
	for n := range volumes - 1 {
		id := fmt.Sprintf("%s-%d", volume, n)
		ids = append(ids, id)
		_, err := p.alpha.p.Create(b.Context(), provision.CreateRequest{ID: id, Pool: p.alpha.Ref, Size: 1 << 20, Tree: provision.Subvolume})
		must(b, err)
		must(b, of.Mark(b.Context(), id, provision.Mark{Promise: promise, Opened: epoch}))
		_, err = of.Writable(b.Context(), id)
		must(b, err)
		must(b, of.Snapshot(b.Context(), provision.PointRequest{Volume: id, Point: point(1)}))
	}
	p.processes()
	began := processor(b)
	for b.Loop() {
		for _, id := range ids {
			s, err := of.State(b.Context(), id)
			must(b, err)
			if s.Dirty {
				b.Fatalf("nothing was written to %s since its point, and its head is dirty: the node would take a point", id)
			}
		}
	}
	b.ReportMetric(float64(p.processes()), "processes")
	b.ReportMetric((processor(b)-began).Seconds()*1e3/float64(b.N), "cpu-ms")
}

// BenchmarkForeground measures writes of 4 KiB that are made durable one by one, while increments leave at
// an interval, or none do.
func BenchmarkForeground(b *testing.B) {
	for name, interval := range map[string]time.Duration{"alone": 0, "each10s": 10 * time.Second, "each1s": time.Second} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				all := foreground(b, interval)
				slices.Sort(all)
				at := func(q float64) float64 { return all[min(len(all)-1, int(q*float64(len(all))))].Seconds() * 1e3 }
				b.ReportMetric(at(0.99), "p99-ms")
				b.ReportMetric(at(0.999), "p99.9-ms")
				b.ReportMetric(at(1), "longest-ms")
			}
		})
	}
}

// foreground returns how long each write took.
func foreground(b *testing.B, interval time.Duration) []time.Duration {
	b.Helper()
	const (
		size  = 256 << 20
		total = 31 * time.Second
	)
	p := newPair(b, 12*bulk, volumeSize)
	w := p.alpha.open(b, "database", size)
	for at := int64(0); at < size; at += 1 << 20 {
		must(b, w.put(at, 1<<20))
	}
	must(b, w.f.Sync())
	p.keep(1)
	p.beta.make(b, volumeSize)
	p.bring(none, point(1))

	ctx, stop := context.WithTimeout(b.Context(), total)
	defer stop()
	type result struct {
		times []time.Duration
		err   error
	}
	written := make(chan result, 1)
	go func() {
		times, err := w.writes(ctx)
		written <- result{times, err}
	}()
	if interval > 0 {
		p.leave(ctx, interval)
	}
	r := <-written
	must(b, r.err)
	return r.times
}

// writes makes a write of 4 KiB durable every few milliseconds, until ctx ends. It returns how long each
// took.
func (w *file) writes(ctx context.Context) (all []time.Duration, err error) {
	const bytes, pause = 4 << 10, 5 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return all, nil
		case <-tick.C:
		}
		began := time.Now()
		if err := errors.Join(w.put(w.from.Int64N(w.size/bytes)*bytes, bytes), unix.Fdatasync(int(w.f.Fd()))); err != nil {
			return nil, err
		}
		all = append(all, time.Since(began))
	}
}

// leave keeps a point and sends it at each interval, and drops the one before.
func (p pair) leave(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for seq := uint64(2); ; seq++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.keep(seq)
		p.bring(point(seq-1), point(seq))
		if seq > 2 {
			must(p.t, p.world.alpha.copies.Release(p.t.Context(), volume, "beta", point(seq-2)))
			for _, n := range []*node{p.world.alpha, p.world.beta} {
				must(p.t, n.copies.Drop(p.t.Context(), volume, []lineage.Point{point(seq - 2)}))
			}
		}
	}
}
