package stream_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// random returns n bytes that no packer makes shorter.
func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func TestAStreamArrivesAsItWasSent(t *testing.T) {
	tests := map[string]struct {
		content []byte
		base    lineage.Point
	}{
		"one byte":             {content: []byte{1}, base: base},
		"less than a frame":    {content: random(1000), base: base},
		"exactly one frame":    {content: random(wire.MaxData), base: base},
		"many frames":          {content: random(40*wire.MaxData + 17), base: base},
		"a full copy":          {content: random(3 * wire.MaxData)},
		"what packs to little": {content: bytes.Repeat([]byte("berth"), wire.MaxData), base: base},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnds(t, test.content)
				e.ask.Base = test.base
				began := time.Now()
				o := e.run(t.Context())
				check(t, o.sendErr)
				check(t, o.recvErr)
				if took := time.Since(began); took > 0 {
					t.Errorf("an end waited for %s, and nothing was late", took)
				}
				if e.to.discarded > 0 {
					t.Error("a half stream was deleted that was none")
				}
				if !o.sent.Committed || !o.received.Committed {
					t.Errorf("committed: the sender says %t, the receiver %t", o.sent.Committed, o.received.Committed)
				}
				if !bytes.Equal(e.to.snapshots[target], test.content) {
					t.Errorf("%d bytes arrived, %d were sent, or they differ", len(e.to.snapshots[target]), len(test.content))
				}
				if !slices.Equal(e.from.closed, []bool{true}) || len(e.to.aborted) > 0 {
					t.Errorf("the source was closed %v, the intake aborted %v", e.from.closed, e.to.aborted)
				}
				all := uint64(len(test.content))
				if p := o.received.Progress; p.Size != all || p.Raw != all || p.Passed != all || p.Wire != o.sent.Progress.Wire {
					t.Errorf("of %d bytes the receiver says %+v, the sender %+v", all, p, o.sent.Progress)
				}
				if got := string(o.received.Offer.Promise); got != "promise" {
					t.Errorf("the promise that arrived is %q", got)
				}
			})
		})
	}
}

func TestAStreamArrivesOverTCP(t *testing.T) {
	content := random(9 * wire.MaxData)
	e := newEnds(t, content)
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's own listener
	check(t, err)
	defer listener.Close()
	e.far, err = net.Dial("tcp", listener.Addr().String()) //nolint:noctx // to the listener above
	check(t, err)
	e.near, err = listener.Accept()
	check(t, err)
	o := e.run(t.Context())
	check(t, errors.Join(o.sendErr, o.recvErr))
	if !bytes.Equal(e.to.snapshots[target], content) {
		t.Error("other bytes arrived")
	}
}

func TestBothEndsTellWhyAStreamEnded(t *testing.T) {
	content := random(6 * wire.MaxData)
	tests := map[string]struct {
		change func(e *ends)
		want   wire.Reason
		// kept is what the receiver keeps of the stream, nil if it never began.
		kept []bool
	}{
		"the peer has no replica":                         {change: func(e *ends) { e.from.replicas = nil }, want: wire.NotReplica},
		"the peer asks for a volume it has no replica of": {change: func(e *ends) { e.ask.Volume = "pvc-2" }, want: wire.NotReplica},
		"the snapshot is gone":                            {change: func(e *ends) { delete(e.from.snapshots, target) }, want: wire.NoSnapshot},
		"the sender names no epoch":                       {change: func(e *ends) { e.from.epoch = lineage.Epoch{} }, want: wire.BadMessage},
		"the sender's epoch is of a restored backup": {
			change: func(e *ends) { e.from.epoch = lineage.Epoch{Number: 2, ID: "other"} }, want: wire.RivalEpoch},
		"the receiver's pool does not say what it has": {
			change: func(e *ends) { e.to.halfErr = errPool }, want: wire.Failed},
		"the receiver's pool does not delete a half stream of another snapshot": {
			change: func(e *ends) { e.to.half, e.to.discardErr = &stream.Half{}, errPool }, want: wire.Failed},
		"the sender cannot go on, and was not asked to": {
			change: func(e *ends) { e.from.openErr = wire.Errorf(wire.CannotResume, "no") }, want: wire.CannotResume},
		"the receiver's pool fails at the last byte": {
			change: func(e *ends) {
				e.to.write = func(total int) error {
					if total == 6*wire.MaxData {
						return errPool
					}
					return nil
				}
			}, want: wire.Failed, kept: []bool{false}},
		"the receiver's pool is full at the beginning": {
			change: func(e *ends) { e.to.beginErr = wire.Errorf(wire.PoolFull, "no room") }, want: wire.PoolFull},
		"the receiver's pool is full in the middle": {
			change: func(e *ends) {
				e.to.write = func(total int) error {
					if total > 2*wire.MaxData {
						return wire.Errorf(wire.PoolFull, "no room")
					}
					return nil
				}
			}, want: wire.PoolFull, kept: []bool{false}},
		"the receiver's pool fails once": {
			change: func(e *ends) {
				failures := 0
				e.to.write = func(int) error {
					if failures++; failures == 2 {
						return errPool
					}
					return nil
				}
			}, want: wire.Failed, kept: []bool{false}},
		"the receiver's pool fails": {
			change: func(e *ends) { e.to.write = func(int) error { return errPool } }, want: wire.Failed, kept: []bool{false}},
		"the snapshot cannot be completed": {
			change: func(e *ends) { e.to.commitErr = errPool }, want: wire.Failed, kept: []bool{false}},
		"the sender's pool fails in the middle": {
			change: func(e *ends) {
				e.from.source = func(_ context.Context, rest []byte) io.Reader {
					return io.MultiReader(bytes.NewReader(rest[:3*wire.MaxData+5]), failing{errPool})
				}
			}, want: wire.Failed, kept: []bool{false}},
		"the sender's command dies, and its pipe ends early": {
			change: func(e *ends) {
				e.from.source = func(_ context.Context, rest []byte) io.Reader {
					return io.MultiReader(bytes.NewReader(rest[:100]), failing{io.ErrUnexpectedEOF})
				}
			}, want: wire.Failed, kept: []bool{false}},
		"the sender's stream is empty": {
			change: func(e *ends) { e.from.snapshots[target] = nil }, want: wire.WrongTotals, kept: []bool{false}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnds(t, content)
				test.change(&e)
				o := e.run(t.Context())
				if s, r := wire.ReasonOf(o.sendErr), wire.ReasonOf(o.recvErr); s != test.want || r != test.want {
					t.Errorf("the sender says %v, the receiver %v, want %s of both", o.sendErr, o.recvErr, test.want)
				}
				if _, visible := e.to.snapshots[target]; visible || o.received.Committed || o.sent.Committed {
					t.Error("the snapshot is visible")
				}
				if !slices.Equal(e.to.aborted, test.kept) {
					t.Errorf("the intake was aborted with %v, want %v", e.to.aborted, test.kept)
				}
				if slices.Contains(e.from.closed, true) {
					t.Error("the source was told that the receiver has the snapshot")
				}
				if half := e.to.discardErr != nil; (e.to.discarded > 0) != half {
					t.Errorf("half streams were deleted %d times", e.to.discarded)
				}
			})
		})
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

func TestACallerEndsAStreamAtEitherEnd(t *testing.T) {
	for _, who := range []string{"sender", "receiver"} {
		t.Run(who, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnds(t, random(8*wire.MaxData))
				ctx, cancel := context.WithCancel(t.Context())
				stop := func(p stream.Progress) {
					if p.Raw > 3*wire.MaxData {
						cancel()
						<-time.After(time.Millisecond) // both ends have noticed that
					}
				}
				if who == "sender" {
					e.sending.Progress = stop
				} else {
					e.receiving.Progress = stop
				}
				o := e.run(ctx)
				if wire.ReasonOf(o.sendErr) != wire.Stopped || wire.ReasonOf(o.recvErr) != wire.Stopped {
					t.Errorf("the sender says %v, the receiver %v", o.sendErr, o.recvErr)
				}
				if !slices.Equal(e.to.aborted, []bool{true}) {
					t.Errorf("the intake was aborted with %v: what came is sound, and is kept", e.to.aborted)
				}
			})
		})
	}
}
