package conformance

import (
	"context"
	"fmt"

	"berth.dev/berth/internal/lineage"
	"berth.dev/berth/internal/ownership"
	"berth.dev/berth/internal/provision"
)

// life is what happens to a volume with two copies, in an order in which each step has an effect. Each
// step can be repeated after it was ended anywhere.
func life(p *pair) []func() error {
	ctx := context.WithoutCancel(p.t.Context())
	take := func(s *side, at lineage.Point, snapshot string) func() error {
		return func() error {
			return s.r.Snapshot(ctx, provision.PointRequest{Volume: id(1), Point: at, Snapshot: snapshot})
		}
	}
	open := func(s *side, as ownership.Promise) func() error {
		return func() error {
			if err := s.r.Mark(ctx, id(1), provision.Mark{Promise: as, Opened: as.Epoch}); err != nil {
				return err
			}
			_, err := s.r.Writable(ctx, id(1))
			return err
		}
	}
	shut := func(s *side, e lineage.Epoch) func() error {
		return func() error { return s.r.Mark(ctx, id(1), provision.Mark{Closed: e}) }
	}
	write := func(s *side, text string) func() error {
		return func() error {
			v, err := s.Get(ctx, id(1))
			if err == nil {
				s.Write(v, text)
			}
			return err
		}
	}
	a, b := &p.a, &p.b
	return []func() error{
		func() error { return a.make() },
		func() error { return b.make() },
		open(a, promiseOne),
		format(a),
		write(a, "first"),
		take(a, point(one, 1), ""),
		func() error { return p.move(a, b, none, point(one, 1)) },
		write(a, "second"),
		take(a, point(one, 2), snapshotID(1)),
		func() error { return p.move(a, b, point(one, 1), point(one, 2)) },
		func() error { return a.r.Drop(ctx, id(1), []lineage.Point{point(one, 1)}) },
		write(a, "unsent"),
		shut(a, one),
		take(a, point(one, 3), ""),
		open(b, promiseTwo),
		write(b, "other"),
		take(b, point(two, 3), ""),
		func() error { return a.r.Preserve(ctx, id(1), point(one, 2)) },
		func() error { return a.r.RollBack(ctx, id(1), point(one, 2)) },
		func() error { return p.move(b, a, point(one, 2), point(two, 3)) },
		shut(b, two),
		func() error { return a.r.Forget(ctx, id(1), point(one, 3)) },
		open(a, promiseThree),
		take(a, point(three, 4), ""),
		func() error { return p.move(a, b, none, point(three, 4)) },
		func() error { return b.r.Release(ctx, id(1), snapshotID(1), point(one, 2)) },
		func() error { return a.r.Release(ctx, id(1), snapshotID(1), point(one, 2)) },
		shut(a, three),
	}
}

func format(s *side) func() error {
	return func() error {
		_, err := s.Format(context.WithoutCancel(s.t.Context()), provision.FormatRequest{ID: id(1), Filesystem: formatted(s.Filesystem)})
		return err
	}
}

// move brings a point from one copy to another, as a shell does that asks again after a crash.
func (p *pair) move(from, to *side, base, target lineage.Point) error {
	ctx := context.WithoutCancel(p.t.Context())
	state, err := to.r.State(ctx, id(1))
	if err != nil || state.Has(target) {
		return err
	}
	q := provision.SendRequest{Volume: id(1), Base: base, Target: target}
	if half := state.Receiving; half != nil && half.Base == base && half.Target == target && half.Token != "" {
		q.Resume = half.Token
	} else if half != nil {
		if err := to.r.Abort(ctx, id(1)); err != nil {
			return err
		}
	}
	h, stream, err := from.sent(q)
	if err != nil {
		return err
	}
	return to.receive(h, stream)
}

// sound fails unless a copy is whole: a point of an epoch is there together with a promise that knows
// it, and a point that was there before its step is there after it.
func (p *pair) sound(s *side, at int) {
	p.t.Helper()
	state, err := s.r.State(context.WithoutCancel(p.t.Context()), id(1))
	if err != nil {
		return // it is not made yet
	}
	for _, held := range state.Points {
		if held.Epoch.Number > state.Promise.Epoch.Number {
			p.t.Errorf("effect %d: point %v came without its promise: %+v", at, held, state)
		}
	}
	if len(state.Points) == 0 && state.Promise.Epoch == two {
		p.t.Errorf("effect %d: the copy lost its points: %+v", at, state)
	}
}

func crashesAnywhere(p *pair) {
	for n, node := range []*side{&p.a, &p.b} {
		for at, ended := 1, true; ended; at += max(1, node.Every) {
			crashed := node.Crash(at)
			p.restart()
			for i, step := range life(p) {
				for tries := 0; ; tries++ {
					err := step()
					if err == nil {
						break
					}
					if tries == 3 {
						p.t.Fatalf("node %d, effect %d: step %d: %v", n, at, i, err)
					}
					p.restart()
					p.sound(&p.a, at)
					p.sound(&p.b, at)
				}
			}
			p.restart() // it may end only in the background
			ended = crashed()
			node.Crash(0)
			p.restart()
			p.checkLife(fmt.Sprintf("node %d, effect %d", n, at))
			if p.t.Failed() {
				return
			}
			if !ended {
				p.t.Logf("the life has %d effects on node %d", (at-1)/2, n)
			}
		}
	}
}

// checkLife fails unless both copies are as they must be after their life, and deletes them.
func (p *pair) checkLife(where string) {
	p.t.Helper()
	a, b := p.a.state(), p.b.state()
	if fmt.Sprint(a.Points) != fmt.Sprint([]lineage.Point{point(one, 2), point(two, 3), point(three, 4)}) || fmt.Sprint(b.Points) != fmt.Sprint([]lineage.Point{point(three, 4)}) {
		p.t.Errorf("%s: the copies hold %v and %v", where, a.Points, b.Points)
	}
	for _, s := range []provision.Replica{a, b} {
		if s.Promise.Epoch != three || len(s.Branches)+len(s.Snapshots)+len(s.Holds) > 0 || s.Receiving != nil || s.Dirty {
			p.t.Errorf("%s: a copy is %+v", where, s)
		}
	}
	p.b.primary(promise(append(promiseThree.Lineage, lineage.Branch{Epoch: lineage.Epoch{Number: 4, ID: "four"}, From: point(three, 4)})...))
	p.b.holds("other")
	p.b.closes(lineage.Epoch{Number: 4, ID: "four"})
	for _, s := range []side{p.a, p.b} {
		must(p.t, "deleting", s.Delete(context.WithoutCancel(p.t.Context()), id(1)))
		s.Idle()
	}
}
