package stream_test

import (
	"bytes"
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// cutting closes a connection instead of writing to it for the nth time.
type cutting struct {
	net.Conn
	left int
}

func (c *cutting) Write(b []byte) (int, error) {
	if c.left--; c.left < 0 {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return c.Conn.Write(b)
}

func TestAStreamThatIsCutAnywhereGoesOnWhereItEnded(t *testing.T) {
	// The receiver acknowledges four frames at a time.
	for name, length := range map[string]int{"and a part of a frame": 4*wire.MaxData + 1000, "exactly": 4 * wire.MaxData} {
		content := random(length)
		t.Run("four frames "+name+", cut by the sender", func(t *testing.T) {
			if resumed, _ := cutAnywhere(t, content, func(e *ends, c *cutting) { c.Conn, e.near = e.near, c }); resumed < 30 {
				t.Errorf("%d streams went on: the cuts miss them", resumed)
			}
		})
		t.Run("four frames "+name+", cut by the receiver", func(t *testing.T) {
			if _, unconfirmed := cutAnywhere(t, content, func(e *ends, c *cutting) { c.Conn, e.far = e.far, c }); unconfirmed == 0 {
				t.Error("no stream was cut before the receiver's last word")
			}
		})
	}
}

// cutAnywhere cuts a stream at each write of one end, and lets it go on. It returns how many streams went
// on from a half, and how many the receiver had committed when they were cut.
func cutAnywhere(t *testing.T, content []byte, put func(*ends, *cutting)) (resumed, committed int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		nodes := newEnds(t, content)
		for at := 0; ; at++ {
			e, cut := nodes.again(content), &cutting{left: at}
			put(&e, cut)
			o := e.run(t.Context())
			switch {
			case cut.left >= 0:
				return // nothing was left to cut
			case o.received.Committed:
				committed++
				if !o.sent.Committed && wire.ReasonOf(o.sendErr) != wire.Unconfirmed {
					t.Errorf("cut at write %d: the receiver has the snapshot, and the sender says %v", at, o.sendErr)
				}
			case o.sent.Committed:
				t.Fatalf("cut at write %d: the sender believes that the receiver has the snapshot: %v", at, o.recvErr)
			case len(e.to.bytes) == len(content):
				t.Fatalf("cut at write %d: the pool has the end of a stream that was not committed", at)
			case goOn(t, e, content) > 0:
				resumed++
			}
		}
	})
	return resumed, committed
}

// goOn plays the rest of a stream that was cut, and returns how much was not sent again.
func goOn(t *testing.T, e ends, content []byte) (kept int) {
	t.Helper()
	if _, visible := e.to.snapshots[target]; visible {
		t.Fatal("a stream that was cut is visible")
	}
	kept = len(e.to.bytes)
	e.near, e.far = net.Pipe()
	o := e.run(t.Context())
	check(t, errors.Join(o.sendErr, o.recvErr))
	if !bytes.Equal(e.to.snapshots[target], content) {
		t.Fatal("other bytes arrived in two parts than in one")
	}
	if p := o.sent.Progress; p.Offset != uint64(kept) || p.Raw != uint64(len(content)-kept) {
		t.Errorf("%d bytes were kept, and the rest is %d bytes from byte %d", kept, p.Raw, p.Offset)
	}
	return kept
}

func TestAHalfStreamIsContinuedOnlyByItsOwnRest(t *testing.T) {
	content := random(3 * wire.MaxData)
	sound := stream.Half{Stream: ask}
	sound.Stream.To = "beta"
	tests := map[string]struct {
		change func(*stream.Half)
		offset uint64
	}{
		"the same stream":            {change: func(*stream.Half) {}, offset: wire.MaxData},
		"from another node":          {change: func(h *stream.Half) { h.Stream.From = "gamma" }},
		"from another base":          {change: func(h *stream.Half) { h.Stream.Base.Seq-- }},
		"to another target":          {change: func(h *stream.Half) { h.Stream.Target.Seq++ }},
		"of another volume":          {change: func(h *stream.Half) { h.Stream.Volume = "pvc-2" }},
		"from an epoch that is over": {change: func(h *stream.Half) { h.Stream.Epoch = epoch1 }, offset: wire.MaxData},
		"in another format":          {change: func(h *stream.Half) { h.Stream.Format = "btrfs" }},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnds(t, content)
				half := sound
				test.change(&half)
				e.to.half, e.to.bytes = &half, bytes.Clone(content[:wire.MaxData])
				o := e.run(t.Context())
				check(t, errors.Join(o.sendErr, o.recvErr))
				if o.sent.Progress.Offset != test.offset {
					t.Errorf("the stream began at byte %d, want %d", o.sent.Progress.Offset, test.offset)
				}
				if want := 1 - int(test.offset/wire.MaxData); e.to.discarded != want {
					t.Errorf("half streams were deleted %d times, want %d", e.to.discarded, want)
				}
				if !bytes.Equal(e.to.snapshots[target], content) {
					t.Error("other bytes arrived")
				}
			})
		})
	}
}

func TestAReceiverStartsOverWhenTheSenderCannotGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := random(2 * wire.MaxData)
		e := newEnds(t, content)
		half := stream.Half{Stream: ask}
		half.Stream.To = "beta"
		e.to.half, e.to.bytes = &half, random(3*wire.MaxData) // more than the stream has
		o := e.run(t.Context())
		if wire.ReasonOf(o.recvErr) != wire.CannotResume || stream.After(o.recvErr).Next != stream.StartOver {
			t.Fatalf("the receiver says %v", o.recvErr)
		}
		if kept := goOn(t, e, content); kept != 0 {
			t.Errorf("%d bytes were kept that nothing can continue", kept)
		}
	})
}

// The writer was restarted and nothing was written since: the newest point is of the epoch before.
func TestAHalfStreamGoesOnWhenItsSenderIsInALaterEpoch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := random(3 * wire.MaxData)
		e := newEnds(t, content)
		e.to.half, e.to.bytes = &stream.Half{Stream: ask}, bytes.Clone(content[:wire.MaxData])
		e.to.half.Stream.To = "beta"
		e.from.epoch = lineage.Epoch{Number: 3, ID: "three"}
		o := e.run(t.Context())
		check(t, errors.Join(o.sendErr, o.recvErr))
		if o.sent.Progress.Offset != wire.MaxData || !bytes.Equal(e.to.snapshots[target], content) {
			t.Errorf("the stream began at byte %d, and what arrived is the same: %t", o.sent.Progress.Offset, bytes.Equal(e.to.snapshots[target], content))
		}
	})
}

// A sender that reads an older record refuses, and has the rest all the same.
func TestAHalfStreamStaysWhenTheSenderRefusesByTheRecord(t *testing.T) {
	for _, reason := range []wire.Reason{wire.NotReplica, wire.Busy, wire.Failed} {
		t.Run(string(reason), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnds(t, random(3*wire.MaxData))
				e.to.half, e.to.bytes = &stream.Half{Stream: ask}, random(wire.MaxData)
				e.to.half.Stream.To = "beta"
				e.from.openErr = wire.Errorf(reason, "no")
				if o := e.run(t.Context()); wire.ReasonOf(o.recvErr) != reason || e.to.discarded != 0 {
					t.Errorf("the receiver says %v, and has discarded %d halves", o.recvErr, e.to.discarded)
				}
			})
		})
	}
}

// A process may end after the pool took all, and before the sender's word about all of it came.
func TestAHalfStreamThatLacksNoBytesIsCompleted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := random(2 * wire.MaxData)
		e := newEnds(t, content)
		half := stream.Half{Stream: ask}
		half.Stream.To = "beta"
		e.to.half, e.to.bytes = &half, bytes.Clone(content)
		o := e.run(t.Context())
		check(t, errors.Join(o.sendErr, o.recvErr))
		if !bytes.Equal(e.to.snapshots[target], content) || o.sent.Progress.Raw > 0 {
			t.Errorf("%d bytes arrived, %d were sent again", len(e.to.snapshots[target]), o.sent.Progress.Raw)
		}
	})
}

// The pool waits, and so must the sender: on a link without buffers it reads no more than the two ends hold.
func TestASlowPoolHoldsTheSenderBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := random(20 * wire.MaxData)
		e := newEnds(t, content)
		read, most := 0, 0
		release := make(chan struct{})
		e.from.source = counting(&read)
		e.to.write = func(int) error {
			<-release
			return nil
		}
		done := make(chan outcome)
		go func() { done <- e.run(t.Context()) }()
		for range 20 {
			synctest.Wait()
			e.to.mu.Lock()
			most = max(most, read-len(e.to.bytes))
			e.to.mu.Unlock()
			release <- struct{}{}
		}
		o := <-done
		check(t, errors.Join(o.sendErr, o.recvErr))
		if limit := 3 * wire.MaxData; most > limit || most == 0 {
			t.Errorf("the ends held %d bytes that the pool did not have, may be %d", most, limit)
		}
	})
}

// buffer is a connection that takes all that is written at once, as a socket does.
type buffer struct {
	net.Conn
	left  chan []byte
	ended chan struct{}
	once  sync.Once
}

func buffered(c net.Conn) *buffer {
	b := &buffer{Conn: c, left: make(chan []byte, 1000), ended: make(chan struct{})}
	go func() {
		for {
			select {
			case text := <-b.left:
				if _, err := c.Write(text); err != nil {
					return
				}
			case <-b.ended:
				return
			}
		}
	}()
	return b
}

func (b *buffer) SetWriteDeadline(time.Time) error { return nil }

func (b *buffer) Write(text []byte) (int, error) {
	b.left <- bytes.Clone(text)
	return len(text), nil
}

func (b *buffer) Close() error {
	b.once.Do(func() { close(b.ended) })
	return b.Conn.Close()
}

// All has left the sender long before the pool has taken it: zeros are short on the link.
func TestASlowPoolThatTakesTheLastBytesHasNotStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		content := make([]byte, 64*wire.MaxData)
		e := newEnds(t, content)
		e.near = buffered(e.near)
		e.to.write = func(int) error {
			<-time.After(20 * time.Second)
			return nil
		}
		o := e.run(t.Context())
		check(t, errors.Join(o.sendErr, o.recvErr))
		if !bytes.Equal(e.to.snapshots[target], content) {
			t.Error("other bytes arrived")
		}
	})
}

func TestPassedAndDurableReachTheSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEnds(t, random(20*wire.MaxData))
		var passed []uint64
		e.sending.Progress = func(p stream.Progress) { passed = append(passed, p.Passed) }
		o := e.run(t.Context())
		check(t, errors.Join(o.sendErr, o.recvErr))
		if !slices.IsSorted(passed) || passed[len(passed)-1] < 16*wire.MaxData {
			t.Errorf("the sender heard %v of %d bytes", passed, 20*wire.MaxData)
		}
		if slices.ContainsFunc(passed, func(n uint64) bool { return n%(4*wire.MaxData) != 0 }) {
			t.Errorf("the sender heard %v, want a word for each four frames", passed)
		}
		if p := o.sent.Progress; p.Durable != p.Passed {
			t.Errorf("the pool keeps all that it took, and the sender heard %+v", p)
		}
	})
}
