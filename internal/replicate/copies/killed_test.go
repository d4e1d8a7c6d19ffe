package copies_test

import (
	"context"
	"strings"
	"testing"

	"berth.dev/berth/internal/provision"
	"berth.dev/berth/internal/provision/conformance"
	"berth.dev/berth/internal/provision/memory/memorytest"
	"berth.dev/berth/internal/replicate/cert/certtest"
	"berth.dev/berth/internal/replicate/copies"
	"berth.dev/berth/internal/replicate/stream"
)

// mortal is a node whose process can be killed at each effect on its pool.
type mortal struct {
	conformance.ReplicaNode
	*node
}

// restart starts the process anew.
func (m *mortal) restart() {
	r := m.Start().(memorytest.Replicating)
	m.Provisioner, m.copies = r.Provisioner, r.Copies
}

// mortals are a world whose volume on alpha has a point.
func mortals(t *testing.T, text string) (w *world, alpha, beta *mortal) {
	t.Helper()
	a := certtest.New(t)
	start := func(name string) *mortal {
		m := &mortal{
			memorytest.ReplicaNode(t, func(r memorytest.Replicating) provision.Provisioner { return r }),
			&node{t: t, identity: a.Node(t, name)},
		}
		m.restart()
		m.make(16)
		return m
	}
	alpha, beta = start("alpha"), start("beta")
	alpha.mark(provision.Mark{Promise: promise, Opened: epoch})
	v, err := alpha.copies.Writable(t.Context(), volume)
	must(t, err)
	alpha.Write(v, text)
	must(t, alpha.copies.Snapshot(t.Context(), provision.PointRequest{Volume: volume, Point: point(1)}))
	w = &world{t: t, alpha: alpha.node, beta: beta.node}
	w.join(alpha)
	return w, alpha, beta
}

// join has the stream use the processes that run now.
func (w *world) join(alpha *mortal) {
	w.stock = &copies.Stock{Copies: w.alpha.copies, Now: alpha.Now, Replica: func(context.Context, string, string) error { return nil }}
	w.sink = &copies.Sink{Copies: w.beta.copies, Node: "beta", Volume: volume}
}

// TestAStreamArrivesThoughAProcessIsKilledAtAnyEffect kills the process of either node at each of its effects,
// starts it anew, and asks again as stream.After says.
func TestAStreamArrivesThoughAProcessIsKilledAtAnyEffect(t *testing.T) {
	text := strings.Repeat("what was written ", 5)
	for _, side := range []string{"alpha", "beta"} {
		at := 1
		for ended := true; ended; at++ {
			w, alpha, beta := mortals(t, text)
			dying := map[string]*mortal{"alpha": alpha, "beta": beta}[side]
			crashed := dying.Crash(at)
			dying.restart()
			w.join(alpha)
			for tries := 1; len(beta.state().Points) == 0; tries++ {
				o := w.fetch(none, point(1))
				dying.restart()
				w.join(alpha)
				switch next := stream.After(o.failedToo).Next; {
				case o.failedToo == nil && !o.received.Committed:
					t.Fatalf("%s, effect %d: no end says anything: %+v", side, at, o)
				case tries == 4 || o.failedToo != nil && next == stream.Person:
					t.Fatalf("%s, effect %d, try %d: %v, and then %s", side, at, tries, o.failedToo, next)
				}
			}
			ended = crashed()
			beta.has(point(1))
			w.idle()
			if t.Failed() {
				return
			}
		}
		if at < 6 {
			t.Errorf("a stream has %d effects only on %s", at, side)
		}
	}
}
