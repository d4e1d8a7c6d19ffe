package stream_test

import (
	"crypto/tls"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// receiver is a node that has a certificate and says what it likes.
type receiver struct {
	t      *testing.T
	reader *wire.Reader
	writer *wire.Writer
	buf    []byte
}

func (r *receiver) say(m wire.Message) {
	if err := r.writer.Message(m); err != nil {
		r.t.Log(err) // the sender may have ended
	}
}

// until reads until a frame of that kind and returns the frames of data before it.
func (r *receiver) until(kind wire.Kind) (frames, bytes, sum uint64, payload []byte) {
	for {
		f, err := r.reader.Next(r.buf)
		if err != nil {
			r.t.Logf("waiting for %s: %v", kind, err)
			return frames, bytes, sum, nil
		}
		if f.Kind == kind {
			return frames, bytes, sum, f.Payload
		}
		if f.Kind == wire.KindData {
			frames, bytes, sum = frames+1, bytes+uint64(len(f.Payload)), r.reader.Chain().Sum()
		}
	}
}

func want(edit func(*wire.Want)) wire.Want {
	w := wire.Want{Stream: ask}
	w.To, w.ID = "beta", wire.StreamID{1}
	if edit != nil {
		edit(&w)
	}
	return w
}

func TestASenderBelievesNoReceiver(t *testing.T) {
	hello := wire.Hello{Lowest: wire.Lowest, Highest: wire.Highest, Node: "beta"}
	tests := map[string]struct {
		play func(r *receiver)
		want wire.Reason
	}{
		"it says that it is another node": {func(r *receiver) {
			hello := hello
			hello.Node = "gamma"
			r.say(hello)
		}, wire.WrongPeer},
		"it speaks another version": {func(r *receiver) {
			hello := hello
			hello.Lowest, hello.Highest = 7, 9
			r.say(hello)
		}, wire.WrongVersion},
		"it says nothing after its greeting but Alive": {func(r *receiver) {
			r.say(hello)
			for range 100 {
				r.say(wire.Alive{})
			}
			r.say(wire.Accept{})
		}, wire.OutOfTurn},
		"it asks in another node's name": {func(r *receiver) {
			r.say(hello)
			r.say(want(func(w *wire.Want) { w.To = "gamma" }))
		}, wire.WrongPeer},
		"it asks for another node's snapshots": {func(r *receiver) {
			r.say(hello)
			r.say(want(func(w *wire.Want) { w.From = "gamma" }))
		}, wire.WrongPeer},
		"it goes on beyond the end": {func(r *receiver) {
			r.say(hello)
			r.say(want(func(w *wire.Want) { w.Resume.Offset = 1 << 62 }))
		}, wire.CannotResume},
		"it sends data": {func(r *receiver) {
			r.say(hello)
			_ = r.writer.Data(r.writer.Prepare(append(make([]byte, wire.HeaderLen), 1), false))
		}, wire.OutOfTurn},
		"it accepts another stream": {func(r *receiver) {
			r.say(hello)
			r.say(want(nil))
			r.until(wire.KindOffer)
			r.say(wire.Accept{ID: wire.StreamID{2}})
		}, wire.WrongStream},
		"it has committed before it has the data": {func(r *receiver) {
			r.say(hello)
			r.say(want(nil))
			r.until(wire.KindOffer)
			r.say(wire.Accept{ID: wire.StreamID{1}})
			r.say(wire.Committed{Bytes: 3*wire.MaxData + 1})
			r.until(wire.KindDone)
		}, wire.WrongTotals},
		"it has committed another stream": {func(r *receiver) {
			r.say(hello)
			r.say(want(nil))
			r.until(wire.KindOffer)
			r.say(wire.Accept{ID: wire.StreamID{1}})
			_, bytes, sum, _ := r.until(wire.KindDone)
			r.say(wire.Committed{Bytes: bytes, Sum: sum ^ 1})
		}, wire.WrongTotals},
		"it offers a stream itself": {func(r *receiver) {
			r.say(hello)
			r.say(wire.Offer{Stream: want(nil).Stream, Form: wire.Incremental})
		}, wire.OutOfTurn},
		"it refuses for a reason that nobody knows": {func(r *receiver) {
			r.say(hello)
			r.say(wire.Refuse{Reason: "Whim", Message: "no"})
		}, wire.Failed},
		"it goes away": {func(r *receiver) {
			r.say(hello)
			r.say(want(nil))
		}, wire.Cut},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := newEnds(t, random(3*wire.MaxData+1))
				var sent stream.Sent
				var sendErr error
				var group sync.WaitGroup
				group.Go(func() {
					l, err := stream.Accept(t.Context(), e.near, e.alpha, e.packer)
					if sendErr = err; err == nil {
						sent, sendErr = stream.Send(t.Context(), l, e.from, stream.Options{})
					}
				})
				config, err := e.beta.Client("alpha")
				check(t, err)
				conn := tls.Client(e.far, config)
				r := &receiver{t: t, reader: wire.NewReader(conn, e.packer), writer: wire.NewWriter(conn, e.packer), buf: make([]byte, wire.MaxData)}
				r.until(wire.KindHello)
				test.play(r)
				if test.want == wire.Cut {
					_ = e.far.Close()
				}
				r.until(wire.KindAbort)
				group.Wait()
				if got := wire.ReasonOf(sendErr); got != test.want {
					t.Errorf("the sender says %v, want %s", sendErr, test.want)
				}
				if sent.Committed || slices.Contains(e.from.closed, true) {
					t.Error("the sender believes that the receiver has the snapshot")
				}
			})
		})
	}
}
