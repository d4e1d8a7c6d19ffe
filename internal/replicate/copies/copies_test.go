package copies_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/memory"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

func TestAPointComesFromNodeToNodeWithItsPromise(t *testing.T) {
	w := newWorld(t)
	w.alpha.take(1, "first")
	w.arrives(none, point(1))
	w.alpha.take(2, "second")
	w.arrives(point(1), point(2))
	w.beta.has(point(1), point(2))
	if s := w.beta.state(); s.Promise.Epoch != epoch || s.Promise.Primary != "alpha" {
		t.Errorf("beta promised %+v", s.Promise)
	}
	w.beta.mark(provision.Mark{Promise: ownership.Promise{Epoch: next, Primary: "beta", Lineage: lineage.Lineage{{Epoch: epoch}, {Epoch: next, From: point(2)}}}, Opened: next})
	v, err := w.beta.copies.Writable(t.Context(), volume)
	must(t, err)
	if got := w.beta.disks.Read(v.ID); got != "second" {
		t.Errorf("beta holds %q", got)
	}
}

var next = lineage.Epoch{Number: 2, ID: "two"}

func TestTheSourceHoldsWhatItsReceiverMayHave(t *testing.T) {
	w := newWorld(t)
	w.alpha.take(1, "first")
	w.arrives(none, point(1))
	w.alpha.take(2, "second")
	if err := w.alpha.copies.Drop(t.Context(), volume, []lineage.Point{point(1)}); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("a point that beta has was dropped: %v", err)
	}
	holds := w.alpha.state().Holds
	if len(holds) != 1 || holds[0].For != "beta" || holds[0].Point != point(1) || time.Until(holds[0].Until) > ownership.HoldFor {
		t.Errorf("the holds are %+v", holds)
	}
}

// A full copy takes longer than the hold that its end leaves.
func TestTheSourceHoldsTheTargetOfAStreamThatOutlivesTheAgent(t *testing.T) {
	w := newWorld(t)
	now := time.Now()
	w.stock.Now = func() time.Time { return now }
	w.alpha.take(1, "first")
	w.alpha.take(2, "second")
	ask := wire.Stream{Volume: volume, From: "alpha", To: "beta", Target: point(1), Format: w.alpha.copies.Abilities().Format}
	s, err := w.stock.Open(t.Context(), wire.Want{Stream: ask})
	must(t, err)
	now = now.Add(2 * ownership.HoldFor)
	again := memory.NewReplicator(w.alpha.Provisioner, w.stock.Now) // knows of no stream
	if err := again.Drop(t.Context(), volume, []lineage.Point{point(1)}); !errors.Is(err, provision.ErrInUse) {
		t.Errorf("the target of a stream under way was dropped: %v", err)
	}
	must(t, s.Close(true))
	now = now.Add(2 * ownership.HoldFor)
	must(t, again.Drop(t.Context(), volume, []lineage.Point{point(1)}))
}

// The receiver restarts for longer than the hold that the end of a stream leaves, and asks for the rest.
func TestTheTargetOfAStreamThatWasCutIsHeldForTheRest(t *testing.T) {
	for _, resumable := range []bool{true, false} {
		w := newWorld(t)
		now := time.Now()
		w.stock.Now = func() time.Time { return now }
		w.stock.Copies = able{w.alpha.copies, resumable}
		w.alpha.take(1, "first")
		w.alpha.take(2, "second")
		ask := wire.Stream{Volume: volume, From: "alpha", To: "beta", Target: point(1), Format: w.alpha.copies.Abilities().Format}
		s, err := w.stock.Open(t.Context(), wire.Want{Stream: ask})
		must(t, err)
		must(t, s.Close(false))
		again := memory.NewReplicator(w.alpha.Provisioner, w.stock.Now)
		now = now.Add(2 * ownership.HoldFor)
		err = again.Drop(t.Context(), volume, []lineage.Point{point(1)})
		if held := errors.Is(err, provision.ErrInUse); held != resumable || !held && err != nil {
			t.Errorf("the copies keep halves is %v, and dropping the target gives %v", resumable, err)
		}
		now = now.Add(provision.MaxHold)
		if err := again.Drop(t.Context(), volume, []lineage.Point{point(1)}); resumable && err != nil {
			t.Errorf("a receiver that vanished leaves a hold: %v", err)
		}
	}
}

// able are copies that keep the half of a stream that was cut, or do not.
type able struct {
	provision.Replicator
	resumable bool
}

func (a able) Abilities() provision.Abilities {
	out := a.Replicator.Abilities()
	out.Resumable = a.resumable
	return out
}

func TestTheSourceHoldsNothingForLongForAStreamThatItRefuses(t *testing.T) {
	w := newWorld(t)
	w.alpha.take(1, "first")
	ask := wire.Stream{Volume: volume, From: "alpha", To: "beta", Target: point(1), Format: w.alpha.copies.Abilities().Format}
	ctx, gone := context.WithCancel(t.Context())
	w.stock.Copies = leaving{w.alpha.copies, gone}
	if _, err := w.stock.Open(ctx, wire.Want{Stream: ask}); err == nil {
		t.Error("a stream has begun whose receiver is gone")
	}
	for _, h := range w.alpha.state().Holds {
		if time.Until(h.Until) > ownership.HoldFor {
			t.Errorf("held until %v", h.Until)
		}
	}
}

// leaving are copies whose receiver goes while its stream is prepared.
type leaving struct {
	provision.Replicator
	gone context.CancelFunc
}

func (l leaving) State(ctx context.Context, _ string) (provision.Replica, error) {
	l.gone()
	return provision.Replica{}, ctx.Err()
}

func (l leaving) Hold(ctx context.Context, id string, h ownership.Hold) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return l.Replicator.Hold(ctx, id, h)
}

// away are copies in a pool that does not answer now.
type away struct{ provision.Replicator }

func (away) State(context.Context, string) (provision.Replica, error) {
	return provision.Replica{}, provision.ErrUnavailable
}

// TestAStreamGoesOnAfterACutAtAnyWrite cuts the link at each of its writes, and asks again as long as
// stream.After says so.
func TestAStreamGoesOnAfterACutAtAnyWrite(t *testing.T) {
	text := strings.Repeat("what was written ", 40)
	for cut := 1; ; cut++ {
		w := newWorld(t)
		w.alpha.take(1, text)
		w.cut = cut
		o := w.fetch(none, point(1))
		if o.failedToo == nil && o.failed == nil {
			if cut < 8 {
				t.Errorf("a stream has %d writes only", cut)
			}
			return
		}
		w.cut = 0
		if !o.received.Committed {
			if then := stream.After(o.failedToo); then.Next != stream.GoOn {
				t.Fatalf("after a cut at write %d: %v, and then %s", cut, o.failedToo, then.Next)
			}
			w.arrives(none, point(1))
		}
		w.beta.has(point(1))
		w.idle()
	}
}

func TestTheRestOfAHalfStreamIsEnough(t *testing.T) {
	w := newWorld(t)
	w.alpha.take(1, strings.Repeat("what was written ", 400))
	half(w, 3)
	if h, ok, err := w.sink.Half(t.Context()); err != nil || !ok || h.Stream.From != "alpha" || h.Stream.Target != point(1) {
		t.Fatalf("the half stream is %+v, %t, %v", h, ok, err)
	}
	o := w.fetch(none, point(1))
	if o.failedToo != nil || o.received.Offer.Form != wire.Resumed {
		t.Errorf("the rest came as %s: %v", o.received.Offer.Form, o.failedToo)
	}
	w.beta.has(point(1))
}

// half leaves a part of the stream of point 1 in beta's pool: so many frames of the pool's. No pool is at
// work on the stream any more when it returns.
func half(w *world, frames int) {
	w.t.Helper()
	state := w.alpha.state()
	q := provision.SendRequest{Volume: volume, Target: point(1)}
	h, err := state.Header(w.alpha.copies.Abilities(), q)
	must(w.t, err)
	h.From = "alpha"
	out, in, err := os.Pipe()
	must(w.t, err)
	cut, end, err := os.Pipe()
	must(w.t, err)
	var ends sync.WaitGroup
	ends.Go(func() { _ = w.alpha.copies.Send(context.WithoutCancel(w.t.Context()), q, in); _ = in.Close() })
	ends.Go(func() {
		b := make([]byte, 24*(2+frames)) // two numbers, and frames of 16 bytes with 8 before each
		n, _ := io.ReadFull(out, b)
		_, _ = end.Write(b[:n])
		_, _ = end.Close(), out.Close()
	})
	if err := w.beta.copies.Receive(w.t.Context(), h, cut); !errors.Is(err, provision.ErrInvalid) {
		w.t.Fatalf("half a stream: %v", err)
	}
	_ = cut.Close()
	ends.Wait()
}

func TestAHalfStreamThatTheSenderCannotContinueBeginsAnew(t *testing.T) {
	w := newWorld(t)
	w.alpha.take(1, strings.Repeat("what was written ", 400))
	half(w, 3)
	w.alpha.take(2, "other data")
	must(t, w.alpha.copies.Release(t.Context(), volume, "beta", point(1)))
	must(t, w.alpha.copies.Drop(t.Context(), volume, []lineage.Point{point(1)}))
	w.arrives(none, point(2)) // and the half stream of point 1 is gone
	w.beta.has(point(2))
	w.idle()
}

func TestARequestThatCannotBeMetIsRefusedForItsReason(t *testing.T) {
	tests := map[string]struct {
		change func(w *world, ask *wire.Stream)
		want   wire.Reason
		then   stream.Next
	}{
		"of a node without a replica": {func(w *world, _ *wire.Stream) {
			w.stock.Replica = func(context.Context, string, string) error { return errors.New("it has no replica") }
		}, wire.NotReplica, stream.Decide},
		"for a point that is not there": {func(_ *world, ask *wire.Stream) { ask.Target = point(9) }, wire.NoSnapshot, stream.Decide},
		"for a base that is not there":  {func(_ *world, ask *wire.Stream) { ask.Base = point(7) }, wire.NoSnapshot, stream.Decide},
		"in another format":             {func(_ *world, ask *wire.Stream) { ask.Format = "btrfs-1" }, wire.WrongFormat, stream.Person},
		"by a copy that is smaller": {func(w *world, _ *wire.Stream) {
			_, err := w.alpha.Expand(w.t.Context(), provision.ExpandRequest{ID: volume, Size: 32 * unit})
			must(w.t, err)
		}, wire.WrongBase, stream.Decide},
		"by a copy that promised a later epoch": {func(w *world, _ *wire.Stream) {
			w.beta.mark(provision.Mark{Promise: ownership.Promise{Epoch: next, Primary: "beta", Lineage: lineage.Lineage{{Epoch: epoch}, {Epoch: next}}}})
		}, wire.WrongBase, stream.Decide},
		"by a node whose volume is gone": {func(w *world, _ *wire.Stream) {
			must(w.t, w.beta.Delete(w.t.Context(), volume))
		}, wire.NoSnapshot, stream.Decide},
		"of a pool that is away for a moment": {func(w *world, _ *wire.Stream) { w.stock.Copies = away{w.stock.Copies} }, wire.Busy, stream.Later},
		"by a caller that does not want it": {func(w *world, _ *wire.Stream) {
			w.sink.Prepare = func(context.Context, provision.StreamHeader) error { return provision.ErrNoSpace }
		}, wire.PoolFull, stream.Later},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.alpha.take(1, "first")
			ask := wire.Stream{Volume: volume, From: "alpha", Epoch: epoch, Target: point(1), Format: w.beta.copies.Abilities().Format}
			tt.change(w, &ask)
			o := w.ask(ask)
			if got := wire.ReasonOf(o.failedToo); got != tt.want || stream.After(o.failedToo).Next != tt.then {
				t.Errorf("%s, and then %s: %v", got, stream.After(o.failedToo).Next, o.failedToo)
			}
			if s, err := w.beta.copies.State(t.Context(), volume); err == nil && len(s.Points) > 0 {
				t.Errorf("beta has %v", s.Points)
			}
			w.idle()
		})
	}
}

func TestAHeaderMustNameTheStreamOfItsOffer(t *testing.T) {
	w := newWorld(t)
	w.alpha.take(1, "first")
	s, err := w.stock.Open(t.Context(), wire.Want{Stream: wire.Stream{Volume: volume, From: "alpha", To: "beta", Target: point(1), Format: w.alpha.copies.Abilities().Format}})
	must(t, err)
	must(t, s.Close(false))
	good := s.Header()
	good.Volume, good.From = volume, "alpha"
	for name, change := range map[string]func(o *wire.Offer){
		"another volume":   func(o *wire.Offer) { o.Volume = "pvc-2" },
		"another epoch":    func(o *wire.Offer) { o.Epoch = next },
		"another target":   func(o *wire.Offer) { o.Target = point(2) },
		"another base":     func(o *wire.Offer) { o.Base = point(1) },
		"another format":   func(o *wire.Offer) { o.Format = "btrfs-1" },
		"no header at all": func(o *wire.Offer) { o.Promise = []byte("{") },
	} {
		o := good
		change(&o)
		if i, err := w.sink.Begin(t.Context(), stream.Header{Offer: o}); err == nil {
			t.Errorf("%s: it was begun", name)
			_ = i.Abort(false)
		}
	}
}

func TestASenderDoesNotSayWhichPointsStayForEver(t *testing.T) {
	w := newWorld(t)
	must(t, w.alpha.copies.Snapshot(t.Context(), provision.PointRequest{Volume: volume, Point: point(1), Snapshot: "snap-invented"}))
	w.arrives(none, point(1))
	w.alpha.take(2, "second")
	w.arrives(point(1), point(2))
	if s := w.beta.state(); len(s.Snapshots) > 0 {
		t.Errorf("beta takes alpha's word for %v", s.Snapshots)
	}
	must(t, w.beta.copies.Drop(t.Context(), volume, []lineage.Point{point(1)}))
}

// TestTheLongestHistoryTravels: as many branches and losses, and as long names and ids, as the API allows.
func TestTheLongestHistoryTravels(t *testing.T) {
	w := newWorld(t)
	long := ownership.Promise{Primary: strings.Repeat("n", 253), Boot: strings.Repeat("b", 64)}
	of := func(n int) lineage.Epoch {
		return lineage.Epoch{Number: uint64(1_000_000_000 + n), ID: fmt.Sprintf("%064d", n)}
	}
	in := func(n int) lineage.Point { return lineage.Point{Epoch: of(n), Seq: uint64(1<<60 - 64 + n)} }
	for n := range lineage.MaxBranches {
		b := lineage.Branch{Epoch: of(n)}
		if n > 0 {
			b.From = in(n - 1)
		}
		long.Lineage = append(long.Lineage, b)
	}
	for n := range 8 {
		long.Losses = append(long.Losses, ownership.Loss{Epoch: of(n), Kept: in(n), Known: in(n)})
	}
	long.Epoch = long.Lineage.Head()
	w.alpha.mark(provision.Mark{Promise: long, Opened: long.Epoch})
	last := lineage.Point{Epoch: long.Epoch, Seq: 1<<60 - 1}
	must(t, w.alpha.copies.Snapshot(t.Context(), provision.PointRequest{Volume: volume, Point: last}))
	if o := w.fetch(none, last); o.failed != nil || o.failedToo != nil {
		t.Fatalf("alpha: %v; beta: %v", o.failed, o.failedToo)
	}
	if diff := cmp.Diff(long, w.beta.state().Promise); diff != "" {
		t.Errorf("beta promised another history (-want +got):\n%s", diff)
	}
}

// TestAStreamThatIsGivenUpAfterItsLastByteIsNoPoint: the end of the pipe would complete it.
func TestAStreamThatIsGivenUpAfterItsLastByteIsNoPoint(t *testing.T) {
	w := newWorld(t)
	w.alpha.take(1, "first")
	s, err := w.stock.Open(t.Context(), wire.Want{Stream: wire.Stream{Volume: volume, From: "alpha", To: "beta", Target: point(1), Format: w.alpha.copies.Abilities().Format}})
	must(t, err)
	offer := s.Header()
	offer.Volume, offer.From = volume, "alpha"
	i, err := w.sink.Begin(t.Context(), stream.Header{Offer: offer})
	must(t, err)
	b := make([]byte, 1<<10)
	for n := 0; err == nil; n, err = s.Read(b) {
		_, failed := i.Write(b[:n])
		must(t, failed)
	}
	must(t, i.Abort(false))
	must(t, s.Close(false))
	w.beta.has()
	w.idle()
}

// arrives fails unless a stream arrives.
func (w *world) arrives(base, target lineage.Point) {
	w.t.Helper()
	if o := w.fetch(base, target); o.failed != nil || o.failedToo != nil || !o.received.Committed || !o.sent.Committed {
		w.t.Fatalf("from %v to %v: %+v", base, target, o)
	}
}

func (n *node) has(points ...lineage.Point) {
	n.t.Helper()
	got := n.state().Points
	if len(got) != len(points) {
		n.t.Fatalf("the copy holds %v, want %v", got, points)
	}
	for i := range points {
		if got[i] != points[i] {
			n.t.Fatalf("the copy holds %v, want %v", got, points)
		}
	}
}

// idle fails if a stream left work or half of itself.
func (w *world) idle() {
	w.t.Helper()
	w.alpha.Wait()
	w.beta.Wait()
	if s, err := w.beta.copies.State(w.t.Context(), volume); err == nil && s.Receiving != nil {
		w.t.Errorf("half a stream is left: %+v", s.Receiving)
	}
}
