package stream_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/replicate/cert"
	"berth.dev/berth/internal/replicate/stream"
	"berth.dev/berth/internal/replicate/wire"
)

// The sender's frames of the streams below: Hello, Offer, four of Data, Done.
const (
	helloFrame = iota
	offerFrame
	firstData
	_
	_
	lastData
	doneFrame
)

// class is one way to damage a stream.
type class struct {
	name  string
	count int
	// damage prepares one stream by chance.
	damage func(w *world, e *ends, r *relay, chance *rand.Rand)
	// want are the reasons that the receiver may give, any if it is empty.
	want []wire.Reason
}

// world is what all damaged streams have in common.
type world struct {
	gamma    cert.Identity
	recorded []raw
}

// edited is a class of which one frame is changed, with sums that the receiver believes.
func edited(name string, count int, want wire.Reason, edit func(f raw, chance *rand.Rand) raw) class {
	return class{name: name, count: count, want: []wire.Reason{want}, damage: func(_ *world, _ *ends, r *relay, chance *rand.Rand) {
		r.resum = true
		r.edit = func(_ int, f raw) []raw { return []raw{edit(f, chance)} }
	}}
}

// flipped is a class of which one bit is changed in a frame of those from first to last.
func flipped(name string, count, first, last int, header bool) class {
	return class{name: name, count: count, damage: func(_ *world, _ *ends, r *relay, chance *rand.Rand) {
		at := first + chance.IntN(last-first+1)
		r.edit = func(n int, f raw) []raw {
			if b := f.payload; n == at && !header {
				b[chance.IntN(len(b))] ^= 1 << chance.IntN(8)
			} else if n == at {
				f.head[chance.IntN(len(f.head))] ^= 1 << chance.IntN(8)
			}
			return []raw{f}
		}
	}}
}

func otherPoint(p lineage.Point, chance *rand.Rand) lineage.Point {
	if chance.IntN(2) == 0 {
		return lineage.Point{Epoch: p.Epoch, Seq: p.Seq + 1 + chance.Uint64N(9)}
	}
	return lineage.Point{Epoch: lineage.Epoch{Number: p.Epoch.Number, ID: fmt.Sprint("x", chance.IntN(99))}, Seq: p.Seq}
}

// bomb is a frame that unpacks to more than it may.
func bomb(packer *wire.Packer, chance *rand.Rand) raw {
	size := wire.MaxData << (1 + chance.IntN(8))
	payload := packer.Pack(nil, make([]byte, size))
	says := uint32(len(payload) + 1 + chance.IntN(wire.MaxData-len(payload)))
	return frameWith(wire.Header{Kind: wire.KindData, Packed: true, Length: uint32(len(payload)), Raw: says}, payload)
}

var classes = []class{
	{name: "bit on the link", count: 80, want: []wire.Reason{wire.Cut, wire.Silent},
		damage: func(_ *world, e *ends, r *relay, chance *rand.Rand) {
			r.edit = nil
			e.near = &flipping{Conn: e.near, at: 4096 + chance.IntN(3*wire.MaxData), bit: chance.IntN(8)}
		}},
	flipped("bit in a header", 80, helloFrame, doneFrame, true),
	flipped("bit in the data", 70, firstData, lastData, false),
	flipped("bit in a message", 30, helloFrame, offerFrame, false),
	flipped("bit in the totals", 30, doneFrame, doneFrame, false),
	{name: "truncated", count: 80, want: []wire.Reason{wire.Cut}, damage: func(_ *world, _ *ends, r *relay, chance *rand.Rand) {
		at := chance.IntN(doneFrame + 1)
		r.edit = func(n int, f raw) []raw {
			switch {
			case n < at:
				return []raw{f}
			case n > at || len(f.payload) == 0:
				return nil
			}
			f.payload = f.payload[:chance.IntN(len(f.payload))]
			return []raw{f}
		}
	}},
	{name: "frame lost", count: 50, damage: func(_ *world, _ *ends, r *relay, chance *rand.Rand) {
		at := firstData + chance.IntN(4)
		r.resum = chance.IntN(2) == 0
		r.edit = func(n int, f raw) []raw {
			if n == at {
				return []raw{}
			}
			return []raw{f}
		}
	}, want: []wire.Reason{wire.WrongSum, wire.WrongTotals}},
	{name: "frame repeated", count: 50, damage: func(_ *world, _ *ends, r *relay, chance *rand.Rand) {
		at := chance.IntN(doneFrame)
		r.resum = chance.IntN(2) == 0
		r.edit = func(n int, f raw) []raw {
			if n == at {
				return []raw{f, f}
			}
			return []raw{f}
		}
	}, want: []wire.Reason{wire.WrongSum, wire.WrongTotals, wire.OutOfTurn}},
	{name: "reordered", count: 50, damage: func(_ *world, _ *ends, r *relay, chance *rand.Rand) {
		at := firstData + chance.IntN(3)
		r.resum = chance.IntN(2) == 0
		var late raw
		r.edit = func(n int, f raw) []raw {
			switch n {
			case at:
				late = f
				return []raw{}
			case at + 1:
				return []raw{f, late}
			}
			return []raw{f}
		}
	}, want: []wire.Reason{wire.WrongSum, wire.WrongTotals}},
	{name: "replayed", count: 40, damage: func(w *world, _ *ends, r *relay, _ *rand.Rand) {
		r.edit = func(n int, _ raw) []raw {
			if n == helloFrame {
				return w.recorded
			}
			return []raw{}
		}
	}, want: []wire.Reason{wire.WrongStream}},
	edited("wrong base", 50, wire.WrongBase, func(f raw, chance *rand.Rand) raw {
		return offered(f, func(o *wire.Offer) { o.Base = otherPoint(o.Base, chance) })
	}),
	edited("wrong volume", 40, wire.WrongVolume, func(f raw, chance *rand.Rand) raw {
		return offered(f, func(o *wire.Offer) { o.Volume = fmt.Sprint("pvc-", 2+chance.IntN(99)) })
	}),
	edited("wrong target", 30, wire.WrongTarget, func(f raw, chance *rand.Rand) raw {
		return offered(f, func(o *wire.Offer) { o.Target = otherPoint(o.Target, chance) })
	}),
	edited("no epoch", 50, wire.BadMessage, func(f raw, _ *rand.Rand) raw {
		return offered(f, func(o *wire.Offer) { o.Epoch = lineage.Epoch{} })
	}),
	edited("rival epoch", 30, wire.RivalEpoch, func(f raw, chance *rand.Rand) raw {
		return offered(f, func(o *wire.Offer) { o.Epoch.ID = fmt.Sprint("x", chance.IntN(99)) })
	}),
	edited("wrong peer", 40, wire.WrongPeer, func(f raw, chance *rand.Rand) raw {
		if f.kind() == wire.KindHello && chance.IntN(3) == 0 {
			return changed(f, func(h wire.Hello) wire.Message { h.Node = "gamma"; return h })
		}
		return offered(f, func(o *wire.Offer) {
			if chance.IntN(2) == 0 {
				o.From = "gamma"
			} else {
				o.To = "gamma"
			}
		})
	}),
	{name: "certificate of another node", count: 30, want: []wire.Reason{wire.Untrusted},
		damage: func(w *world, e *ends, r *relay, _ *rand.Rand) { r.edit, e.alpha = nil, w.gamma }},
	{name: "right peer for the wrong volume", count: 30, want: []wire.Reason{wire.NotReplica},
		damage: func(_ *world, e *ends, r *relay, _ *rand.Rand) { r.edit, e.from.replicas = nil, []string{"gamma"} }},
	edited("resumed elsewhere", 40, wire.WrongResume, func(f raw, chance *rand.Rand) raw {
		return offered(f, func(o *wire.Offer) { o.Form, o.Offset = wire.Resumed, chance.Uint64N(1<<40) })
	}),
	{name: "bomb", count: 60, want: []wire.Reason{wire.BadPacking}, damage: func(_ *world, e *ends, r *relay, chance *rand.Rand) {
		at := firstData + chance.IntN(4)
		r.resum = true
		r.edit = func(n int, f raw) []raw {
			if n == at {
				return []raw{bomb(e.packer, chance)}
			}
			return []raw{f}
		}
	}},
	edited("wrong totals", 40, wire.WrongTotals, func(f raw, chance *rand.Rand) raw {
		return changed(f, func(d wire.Done) wire.Message {
			switch chance.IntN(3) {
			case 0:
				d.Frames++
			case 1:
				d.Bytes -= 1 + chance.Uint64N(1000)
			case 2:
				d.Sum ^= 1 << chance.IntN(64)
			}
			return d
		})
	}),
}

func TestAThousandDamagedStreamsAreRefused(t *testing.T) {
	content := random(3*wire.MaxData + 1000)
	synctest.Test(t, func(t *testing.T) {
		fresh := newEnds(t, content)
		w := &world{gamma: fresh.authority.Node(t, "gamma")} // a node of the same cluster
		first := &relay{edit: func(_ int, f raw) []raw { return []raw{f} }}
		e := fresh.again(content)
		wait := first.between(t.Context(), &e)
		o := e.run(t.Context())
		wait()
		check(t, o.recvErr)
		w.recorded = first.seen

		total := 0
		for _, c := range classes {
			refused := 0
			for n := range c.count {
				chance := rand.New(rand.NewPCG(uint64(n), uint64(len(c.name))))
				if reason, ok := c.play(t.Context(), w, fresh.again(content), chance, content); ok {
					refused++
				} else {
					t.Errorf("%s, number %d: %s", c.name, n, reason)
				}
			}
			t.Logf("%4d refused: %s", refused, c.name)
			total += refused
		}
		if total != 1000 {
			t.Errorf("%d damaged streams were refused, want 1000", total)
		}
	})
}

// play plays one damaged stream. It is not ok if the stream was not refused, for another reason than the
// class has, or left anything behind that is visible or was not sent.
func (c class) play(ctx context.Context, w *world, e ends, chance *rand.Rand, content []byte) (string, bool) {
	r := &relay{edit: func(_ int, f raw) []raw { return []raw{f} }}
	c.damage(w, &e, r, chance)
	if r.edit != nil {
		defer r.between(ctx, &e)()
	}
	o := e.run(ctx)
	reason := wire.ReasonOf(o.recvErr)
	switch _, visible := e.to.snapshots[target]; {
	case reason == "" || o.received.Committed || visible || len(e.to.snapshots) != 1:
		return fmt.Sprintf("the stream was not refused: %v", o.recvErr), false
	case o.sent.Committed || slices.Contains(e.from.closed, true):
		return "the sender believes that the receiver has the snapshot", false
	case len(c.want) > 0 && !slices.Contains(c.want, reason):
		return fmt.Sprintf("refused for another reason: %v", o.recvErr), false
	case len(e.to.aborted) != e.to.begun:
		return fmt.Sprintf("%d streams were begun and %d aborted", e.to.begun, len(e.to.aborted)), false
	case !bytes.HasPrefix(content, e.to.bytes) || len(e.to.bytes) == len(content):
		return fmt.Sprintf("%d bytes were kept that are no beginning of the stream", len(e.to.bytes)), false
	case len(e.to.bytes) > 0 && !stream.After(o.recvErr).Keep:
		return "bytes of a damaged stream were kept", false
	}
	return "", true
}
